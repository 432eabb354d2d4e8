"""The walls around a worker: what is taken away from it before it sees any candidate's code.

Which layers could be put up is returned, reported with each result, and never assumed. On Linux as
root: a mount namespace that hides homes, no network, own IPC, the uid of nobody. Without root: a
user namespace gives the network and IPC namespaces where the system permits it. Everywhere: no new
privileges, death with the parent, resource limits, its own session, an allow-listed environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
from pathlib import Path

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SIGKILL = 9
_NOBODY = 65534
_HOMES = (Path("/root"), Path("/home"))

ENVIRONMENT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "OMP_NUM_THREADS",
    "VIRTUAL_ENV",
)
"""All that a worker inherits of the environment. Nothing that could hold a key."""

_libc = ctypes.CDLL(None, use_errno=True)


def python_path() -> str:
    """PYTHONPATH for a process of ours: our packages, then what was there already."""
    ours = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH", "")]))


def clean_environment(scratch: Path) -> dict[str, str]:
    """The environment of a process that will run candidate code, with `scratch` as its home."""
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return kept | {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(scratch / "extensions"),
        # Freed memory stays in the heap. Otherwise it depends on the heap's luck whether a large
        # temporary is new from the kernel at every call: the same eager call was seen to take 1.9
        # or 13.9 ms, most of it page faults.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(2**40),
        "MALLOC_TOP_PAD_": str(2**26),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": python_path(),
        "PYTHONUNBUFFERED": "1",
    }


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unshare(flags: int, what: str) -> None:
    _checked(_libc.unshare(flags), what)


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    _checked(
        _libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, flags, None),
        f"mount {target}",
    )


def _interpreter_prefixes() -> list[Path]:
    """What under a home must stay readable: the interpreter, its packages, our own code."""
    ours = Path(__file__).resolve().parents[1]
    wanted = {
        Path(sys.prefix),
        Path(sys.base_prefix),
        ours,
        *(Path(p) for p in sys.path if p and Path(p).is_dir()),
    }
    found: list[Path] = []
    for path in sorted({p.resolve() for p in wanted}):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found


def hide_homes() -> bool:
    """Put an empty file system over each home, with the interpreter's prefixes bound back.

    Needs a mount namespace of one's own. True if anything was hidden.
    """
    hidden = False
    prefixes = _interpreter_prefixes()
    for home in _HOMES:
        if not home.is_dir():
            continue
        inside = [p for p in prefixes if p.is_relative_to(home)]
        if home in inside:
            continue
        handles = [(path, os.open(path, os.O_PATH)) for path in inside]
        _mount("tmpfs", str(home), "tmpfs", 0)
        for path, handle in handles:
            path.mkdir(parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{handle}", str(path), None, _MS_BIND | _MS_REC)
            os.close(handle)
        _mount("tmpfs", str(home), None, _MS_REMOUNT | _MS_RDONLY)
        hidden = True
    return hidden


def enclose_zygote() -> list[str]:
    """The walls that every worker inherits, put up in the zygote; the names of those that held."""
    layers: list[str] = []
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):
            _unshare(_CLONE_NEWNS, "mount namespace")
            _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
            layers.append("mount_namespace")
            if hide_homes():
                layers.append("homes_hidden")
        for flag, name in (
            (_CLONE_NEWNET, "network_namespace"),
            (_CLONE_NEWIPC, "ipc_namespace"),
            (_CLONE_NEWUTS, "uts_namespace"),
        ):
            with contextlib.suppress(OSError):
                _unshare(flag, name)
                layers.append(name)
    else:
        uid, gid = os.geteuid(), os.getegid()
        with contextlib.suppress(OSError):
            _unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC, "user namespace")
            layers += ["user_namespace", "network_namespace", "ipc_namespace"]
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return layers


def confine_worker(
    scratch: Path, *, memory_bytes: int | None, cpu_seconds: int, file_bytes: int = 2**30
) -> list[str]:
    """Give up privileges in a freshly forked worker; the names of the layers that held.

    `memory_bytes` limits the address space; None on a GPU, where RLIMIT_AS would break CUDA's
    reservations. Raises `OSError` if the uid can't be dropped although we are root.
    """
    layers: list[str] = []
    os.setsid()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        layers.append("uid_nobody")
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    # After the uid: setresuid clears it.
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "parent death signal")
    layers += ["no_new_privs", "dies_with_parent"]
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_NPROC: 4096,
        resource.RLIMIT_NOFILE: 1024,
    }
    if memory_bytes is not None:
        limits[resource.RLIMIT_AS] = memory_bytes
        layers.append("memory_limit")
    for which, value in limits.items():
        hard = resource.getrlimit(which)[1]
        cap = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (cap, cap))
    layers.append("rlimits")
    os.chdir(scratch)
    environment = clean_environment(scratch)
    os.environ.clear()
    os.environ.update(environment)
    layers.append("clean_environment")
    return layers
