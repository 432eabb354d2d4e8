"""Compilers, PyTorch's and Python's headers on this machine, and the command lines over them.

PyTorch is found and its version read without importing it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evaluator.errors import BuilderError

_NVCC_DEFINES = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)
_LISTED_FILE = re.compile(r"(?:\\.|[^ \t\n\\])+")
"""A name in a list of files that a compiler writes for make."""
_ESCAPED = re.compile(r"[\\$]([ \t#$])")
_FOR_A_DEBUGGER = frozenset({"-G", "--device-debug", "-device-debug"})
STUBS = "stubs"
"""Folder, in the build folder, of the libraries that a light link finds first."""
# Symbols are as visible as PyTorch's own build leaves them, so that ctypes finds functions. None of
# them is shared with another library: -fno-gnu-unique is for that, and the linker's -Bsymbolic.
_LIGHT_HOST = ("-fno-gnu-unique",)

TOOLKIT = Path("/usr/local/cuda/bin")
"""Where NVIDIA's packages put its programs, often without adding it to the path."""


def cxx_compiler() -> str | None:
    """Path of the C++ compiler: `$CXX`, else g++, else c++; None where there is none."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "c++"]
    return next((path for name in names if (path := shutil.which(name))), None)


def find_tool(name: str) -> str | None:
    """Path of a program of CUDA's: under `$CUDA_HOME` or `$CUDA_PATH`, on the path, under
    /usr/local/cuda, or of Nsight Compute; None where there is none."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places = [Path(home) / "bin" / name for home in homes if home]
    places += [Path(shutil.which(name) or TOOLKIT / name), TOOLKIT / name]
    places += sorted(Path("/opt/nvidia/nsight-compute").glob(f"*/{name}"), reverse=True)
    return next((str(place) for place in places if os.access(place, os.X_OK)), None)


def printed_by(*command: str, timeout_s: float = 60.0) -> str | None:
    """What a trusted program prints; None where it is not there, takes too long or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuilderError(f"{command[0]} cannot be run: {error}") from error
    return done.stdout + done.stderr


@dataclass(frozen=True)
class Torch:
    folder: Path
    version: str
    standard: str
    """The language standard that its headers need, as a flag."""

    @classmethod
    def find(cls) -> Torch:
        """The PyTorch of this interpreter. Raises BuilderError where there is none."""
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            raise BuilderError("PyTorch is not installed here: pip install torch")
        folder = Path(spec.origin).resolve().parent
        version = re.search(r"__version__ = '([^']+)'", (folder / "version.py").read_text())
        extension = (folder / "utils" / "cpp_extension.py").read_text()
        standards = re.findall(r"-std=(c\+\+\d\d)\b", extension)
        return cls(
            folder,
            version[1] if version else "unknown",
            f"-std={max(standards, default='c++17')}",
        )

    @property
    def includes(self) -> tuple[Path, ...]:
        include = self.folder / "include"
        return include, include / "torch" / "csrc" / "api" / "include"

    @property
    def dispatches_types(self) -> bool:
        """Whether its AT_DISPATCH macros take what `Tensor::type()` gives, as once they did."""
        return "DeprecatedTypeProperties" in (self.includes[0] / "ATen" / "Dispatch.h").read_text()

    @property
    def libraries(self) -> Path:
        return self.folder / "lib"


@dataclass(frozen=True)
class Cuda:
    nvcc: str
    folder: Path
    version: str

    @classmethod
    def find(cls) -> Cuda:
        """The toolkit that nvcc belongs to. Raises BuilderError where there is none."""
        nvcc = find_tool("nvcc")
        if nvcc is None:
            raise BuilderError(
                "CUDA sources need nvcc, and there is none: install the CUDA toolkit or set "
                "CUDA_HOME to where it is"
            )
        top = re.search(r"^#\$ TOP=(.+)$", _output([nvcc, "--dryrun", "-c", "x.cu"]), re.MULTILINE)
        folder = Path(top[1]).resolve() if top else Path(nvcc).resolve().parent.parent
        return cls(nvcc, folder, _output([nvcc, "--version"]).strip().splitlines()[-1])

    @property
    def libraries(self) -> Path:
        wide = self.folder / "lib64"
        return wide if wide.exists() else self.folder / "lib"


@dataclass(frozen=True)
class Toolchain:
    compiler: str
    compiler_version: str
    torch: Torch
    python_include: Path
    cuda: Cuda | None
    architecture: str | None
    """Compute capability such as `9.0a`, None without a GPU."""

    @classmethod
    def find(cls, architecture: str | None, *, with_cuda: bool) -> Toolchain:
        """Raises BuilderError, with the remedy, for a compiler that is missing."""
        compiler = cxx_compiler()
        if compiler is None:
            raise BuilderError(
                "there is no C++ compiler: install g++ (Debian, Ubuntu: apt-get install g++)"
            )
        if with_cuda and architecture is None:
            raise BuilderError(
                "it builds CUDA sources, and there is no GPU here: judge it on a machine with one "
                "(--device cuda)"
            )
        python_include = Path(sysconfig.get_paths()["include"]).resolve()
        if not (python_include / "Python.h").exists():
            raise BuilderError(
                "Python's headers are missing: install them (Debian, Ubuntu: apt-get install "
                "python3-dev)"
            )
        return cls(
            compiler=compiler,
            compiler_version=_output([compiler, "--version"]).splitlines()[0],
            torch=Torch.find(),
            python_include=python_include,
            cuda=Cuda.find() if with_cuda else None,
            architecture=architecture if with_cuda else None,
        )

    @property
    def host_fingerprint(self) -> str:
        processor = Path("/proc/cpuinfo")
        features = "".join(
            line
            for line in (processor.read_text().splitlines() if processor.exists() else ())
            if line.startswith(("flags", "Features", "model name"))
        )
        parts = (
            self.compiler_version,
            self.torch.version,
            str(self.torch.folder),
            str(self.python_include),
            hashlib.sha256(features.encode()).hexdigest(),
        )
        return "\0".join(parts)

    @property
    def fingerprint(self) -> str:
        cuda = (self.cuda.version, str(self.cuda.folder)) if self.cuda else ()
        return "\0".join((self.host_fingerprint, *cuda, self.architecture or ""))

    @property
    def visible(self) -> tuple[Path, ...]:
        """Folders that a compiler must see besides the system's."""
        compiler = Path(self.compiler).resolve()
        folders = [*self.torch.includes[:1], self.torch.libraries, self.python_include]
        if not compiler.is_relative_to("/usr"):
            folders.append(compiler.parent.parent)
        if self.cuda and not self.cuda.folder.is_relative_to("/usr"):
            folders.append(self.cuda.folder)
        return tuple(folders)

    @property
    def includable(self) -> tuple[Path, ...]:
        """Folders whose headers a candidate may read, the build folder aside."""
        system = [Path("/usr/include"), Path("/usr/local/include"), Path("/usr/lib")]
        return (*system, *self.visible, *((self.cuda.folder,) if self.cuda else ()))

    @property
    def environment(self) -> dict[str, str]:
        path = ["/usr/local/bin", "/usr/bin", "/bin", str(Path(self.compiler).parent)]
        if self.cuda:
            path.insert(0, str(self.cuda.folder / "bin"))
        return {"PATH": ":".join(dict.fromkeys(path)), "LC_ALL": "C"}

    @property
    def _plain_names(self) -> tuple[str, ...]:
        """Spares GCC to look for the shortest name of each header, thousands of calls for some."""
        gcc = "clang" not in self.compiler_version
        return ("-fno-canonical-system-headers",) if gcc else ()

    def _common(self, name: str, headers: Path | None) -> list[str]:
        folders = [*((headers,) if headers else ()), *self.torch.includes, self.python_include]
        if self.cuda:
            folders.append(self.cuda.folder / "include")
        common = [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        if headers and self.torch.dispatches_types:
            common.append("-DREFINERY_DISPATCHES_TYPES")
        for folder in folders:
            common += ["-isystem", str(folder)]
        return common

    def host_command(
        self, name: str, source: str, flags: tuple[str, ...], headers: Path | None
    ) -> list[str]:
        """Compiles a C++ file; `headers`: the light ones, None for PyTorch's.

        The object has the file's name with `.o`, in the build folder itself.
        """
        own = _LIGHT_HOST if headers else ()
        file = PurePosixPath(source).name
        return [
            *(self.compiler, "-MD", "-MF", f"{file}.d", "-fdiagnostics-color=never"),
            *self._plain_names,
            *(*self._common(name, headers), "-fPIC", self.torch.standard, *own, *flags),
            *("-c", source, "-o", f"{file}.o"),
        ]

    def device_command(
        self, name: str, source: str, flags: tuple[str, ...], headers: Path | None
    ) -> list[str]:
        """Compiles a CUDA file as `host_command` does, for the present architecture only.

        Its code names its source lines to profilers and sanitizers; it is the same as without.
        """
        assert self.cuda is not None and self.architecture is not None
        file = PurePosixPath(source).name
        number = self.architecture.replace(".", "")
        host = ",".join(("-fPIC", *self._plain_names, *(_LIGHT_HOST if headers else ())))
        standard = () if any("std=" in flag for flag in flags) else (self.torch.standard,)
        # Code for a debugger names them anyway, and the compiler warns of both together.
        lines = () if _FOR_A_DEBUGGER & set(flags) else ("-lineinfo",)
        return [
            *(self.cuda.nvcc, "-MD", "-MF", f"{file}.d", *self._common(name, headers)),
            *(*_NVCC_DEFINES, f"-gencode=arch=compute_{number},code=sm_{number}"),
            *("-ccbin", self.compiler, "-Xcompiler", host, *lines, *flags, *standard),
            *("-c", source, "-o", f"{file}.o"),
        ]

    def device_steps(self, command: list[str], folder: Path) -> str:
        """What nvcc says (`--dryrun`) that it would run for this command in this build folder.

        It reads no source for that. Empty of steps where it refuses the command or does not answer.
        """
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        try:
            done = subprocess.run(
                [*command, "--dryrun"],
                cwd=folder,
                env=self.environment | {"TMPDIR": str(temporary)},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            # No steps: nvcc does them itself, within the time that a build may take. Of a command
            # that is too long the enclosure reports.
            return ""
        return done.stderr

    def link_command(
        self, objects: list[str], library: str, flags: tuple[str, ...], *, light: bool
    ) -> list[str]:
        """Links objects to a shared library.

        The CUDA runtime is linked statically: it shares the device's primary context, and so its
        streams, with PyTorch's, and needs no file in the worker.
        """
        command = [self.compiler, "-shared", *objects, "-o", library]
        if light:
            # Stubs know no symbols, so the linker cannot know which are needed.
            command += [f"-L{STUBS}", "-Wl,-Bsymbolic", "-Wl,--no-as-needed"]
        command.append(f"-L{self.torch.libraries}")
        command += [
            f"-l{name}" for name in self.torch_libraries if self.cuda or "_cuda" not in name
        ]
        if self.cuda:
            command += [f"-L{self.cuda.libraries}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
        # What a candidate names and does not use must not have to be found in the worker.
        return [*command, "-Wl,--as-needed", *flags]

    @property
    def torch_libraries(self) -> tuple[str, ...]:
        """Names of PyTorch's libraries that extensions are linked with, as far as it has them."""
        names = ("c10", "c10_cuda", "torch_cpu", "torch_cuda", "torch", "torch_python")
        return tuple(name for name in names if (self.torch.libraries / f"lib{name}.so").exists())

    def stub_command(self, soname: str, file: str) -> list[str]:
        """Makes an empty library of this name: the linker reads it quickly, where PyTorch's own
        take it half a second. Symbols are found when the result is loaded beside PyTorch."""
        name = f"-Wl,-soname,{soname}"
        return [self.compiler, "-shared", "-nostdlib", name, "-x", "c", "/dev/null", "-o", file]

    def forbidden_include(self, dependencies: str, allowed: tuple[Path, ...]) -> str | None:
        """The first file of a make-style dependency list that no candidate may read."""
        _, _, listed = dependencies.replace("\\\n", " ").partition(": ")
        within = tuple(f"{folder}/" for folder in (*self.includable, *allowed))
        folders: dict[str, str] = {}
        for escaped in dict.fromkeys(_LISTED_FILE.findall(listed)):
            word = _ESCAPED.sub(r"\1", escaped)
            # No folder of the candidate's is a link.
            if not word.startswith("/") and not os.path.normpath(word).startswith(".."):
                continue
            # Of a thousand headers, resolving each one's folders again would take half a second.
            folder, name = os.path.split(word)
            if folder not in folders:
                folders[folder] = os.path.realpath(folder)
            real = f"{folders[folder]}/{name}"
            if name == ".." or os.path.islink(real):  # noqa: PTH114 (the other one may raise)
                real = os.path.realpath(real)
            if not real.startswith(within):
                return word
        return None
