"""python -m agent.doctor : what this machine can do, and how to fix what it can't.

It looks and does not touch: no CUDA context, no torch import, no value of any key is read out.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

import typer

from evaluator.builder.toolchain import cxx_compiler, find_tool, printed_by
from evaluator.command.command_line import Line, print_lines, serve
from evaluator.hardware import counter_rights
from evaluator.walls.privileges import may_watch

State = Literal["yes", "no", "note"]

KEYS = {
    "ANTHROPIC_API_KEY": "anthropic/...",
    "OPENAI_API_KEY": "openai/...",
    "GEMINI_API_KEY": "gemini/...",
    "DEEPSEEK_API_KEY": "deepseek/...",
    "MISTRAL_API_KEY": "mistral/...",
    "XAI_API_KEY": "xai/...",
    "GROQ_API_KEY": "groq/...",
    "OPENROUTER_API_KEY": "openrouter/...",
    "TOGETHERAI_API_KEY": "together_ai/...",
    "FIREWORKS_AI_API_KEY": "fireworks_ai/...",
    "AZURE_API_KEY": "azure/...",
    "AWS_ACCESS_KEY_ID": "bedrock/...",
    "HF_TOKEN": "huggingface/...",
}
"""The variables under which LiteLLM looks for keys, and the models that they open."""
_GVISOR_RELEASE = "4.4.0"
"""What gVisor answers when it is asked for the kernel's version, whatever runs below it."""
_OPEN_COUNTERS = (
    "ncu says ERR_NVGPUCTRPERM: load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0 "
    "(in /etc/modprobe.d, then reboot), or run as root"
)
_OPEN_CONTAINER = (
    "ncu says ERR_NVGPUCTRPERM: start the container with --cap-add PERFMON, or open the counters "
    "to all users on its host (NVreg_RestrictProfilingToAdminUsers=0)"
)
_NEWER_DRIVER = (
    "before R565 counters ask for CAP_SYS_ADMIN, which no candidate gets: open them to all users "
    "(NVreg_RestrictProfilingToAdminUsers=0), or take a newer driver"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for: `no` lacks something, `note` is neither good nor bad."""

    group: str
    name: str
    state: State
    found: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    yield from _software()
    yield from _compilers()
    yield from _gpus()
    yield from _profilers()
    yield from _isolation()
    yield from _space()
    yield from _keys()


def _software() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield _finding(
        "software", "python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer"
    )
    torch = torch_version()
    yield _finding("software", "torch", bool(torch), torch or "", "pip install torch")
    for name in ("litellm", "langgraph", "triton"):
        try:
            yield Finding("software", name, "yes", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            optional = name == "triton"
            remedy = "only for --backend triton" if optional else "make install"
            yield Finding("software", name, "note" if optional else "no", "", remedy)


def torch_version() -> str | None:
    """Version of the installed torch, with its build tag (`2.13.0+cpu`); None without torch."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def _compilers() -> Iterator[Finding]:
    from evaluator.hardware.devices import list_gpus

    cxx = cxx_compiler()
    yield _finding(
        "compilers", "g++", bool(cxx), _version(cxx), "apt install g++, or set CXX (backend cpp)"
    )
    nvcc = find_tool("nvcc")
    remedy = "install the CUDA toolkit and set CUDA_HOME (backend cuda)"
    if nvcc is None and not list_gpus():
        yield Finding("compilers", "nvcc", "note", "", "not needed without a GPU")
    else:
        yield _finding("compilers", "nvcc", bool(nvcc), _version(nvcc), remedy)
    header = Path(sysconfig.get_path("include")) / "Python.h"
    remedy = "apt install python3-dev: compiled kernels are Python extensions"
    yield _finding("compilers", "Python.h", header.exists(), str(header.parent), remedy)
    ninja = shutil.which("ninja") or shutil.which("ninja", path=str(Path(sys.executable).parent))
    yield _finding("compilers", "ninja", bool(ninja), _version(ninja), "pip install ninja")


def _gpus() -> Iterator[Finding]:
    from evaluator.hardware.device_choice import by_name
    from evaluator.hardware.devices import list_gpus

    gpus = list_gpus()
    if not gpus:
        yield Finding(
            "devices", "GPU", "note", "none visible", "kernels are written in C++ for the CPU"
        )
        return
    for index, gpu in enumerate(gpus):
        yield Finding(
            "devices", f"cuda:{index}", "yes", f"{gpu.name}, {gpu.memory_bytes / 2**30:.0f} GiB"
        )
    if len(gpus) > 1:
        kinds = by_name(list(enumerate(gpus)))
        devices = ", ".join(f"--device {choice} for {name}" for name, choice in kinds.items())
        devices = devices if len(kinds) > 1 else "--device all: one run on all of them"
        yield Finding("devices", "several GPUs", "note", devices)
    if (torch_version() or "").endswith("+cpu"):
        remedy = "install a CUDA build of torch: pip install torch --index-url (see pytorch.org)"
        yield Finding("devices", "torch for CUDA", "no", "torch is a CPU build", remedy)


def _profilers() -> Iterator[Finding]:
    from evaluator.hardware.devices import list_gpus

    needed = bool(list_gpus())
    for name, remedy in [
        ("ncu", "install Nsight Compute; torch.profiler is used until then"),
        ("compute-sanitizer", "comes with the CUDA toolkit"),
    ]:
        path = find_tool(name)
        if path or needed:
            yield _finding("profilers", name, bool(path), _version(path), remedy)
        else:
            yield Finding("profilers", name, "note", "", "not needed without a GPU")
    if needed:
        yield from filter(None, [counters()])


def counters() -> Finding | None:
    """Whether `ncu` may read a GPU's counters; None where there is no driver to ask."""
    if platform.release() == _GVISOR_RELEASE:
        remedy = (
            "profiles come from torch.profiler; for ncu use a container without gVisor, or a VM"
        )
        return Finding("profilers", "counters", "no", "gVisor hides them", remedy)
    try:
        restricted = counter_rights.for_administrators()
    except OSError as error:
        return Finding("profilers", "counters", "note", f"can't tell: {error.strerror}")
    if restricted is None:
        return None
    if not restricted:
        return Finding("profilers", "counters", "yes", "open to users")
    if os.geteuid() != 0:
        return Finding("profilers", "counters", "no", "root only", _OPEN_COUNTERS)
    release = counter_rights.release()
    if release is not None and release < counter_rights.WATCHERS_SINCE:
        return Finding("profilers", "counters", "no", f"driver {release}", _NEWER_DRIVER)
    if not may_watch():
        return Finding("profilers", "counters", "no", "root without CAP_PERFMON", _OPEN_CONTAINER)
    return Finding("profilers", "counters", "yes", "root, CAP_PERFMON")


def _isolation() -> Iterator[Finding]:
    from evaluator.walls.demands import BESIDES, STRICT, identity, remedy

    layers = _layers_that_hold()
    for layer in (identity(layers), *STRICT):
        yield _finding("isolation", layer, layer in layers, "tried, and held", remedy(layer))
    for layer in BESIDES:
        if layer in layers:
            yield Finding("isolation", layer, "yes", "tried, and held")
        else:
            yield Finding("isolation", layer, "note", "not here", remedy(layer))


def _layers_that_hold() -> tuple[str, ...]:
    """The walls that a worker gets here: they are put up and attacked in a process of its own."""
    from evaluator.walls.survey import SurveyError, survey

    try:
        return survey()
    except SurveyError:
        return ()


def _space() -> Iterator[Finding]:
    for name, path, wanted, remedy in [
        ("/dev/shm", Path("/dev/shm"), 1, "give the container more: docker run --shm-size 4g"),
        ("disk here", Path.cwd(), 2, "free some space, or put runs elsewhere with -o"),
        ("scratch", Path(os.environ.get("TMPDIR", "/tmp")), 1, "free some space, or set TMPDIR"),
    ]:
        if not path.exists():
            yield Finding("space", name, "no", "missing", remedy)
            continue
        free = shutil.disk_usage(path).free / 2**30
        yield _finding("space", name, free >= wanted, f"{free:.1f} GiB free", remedy)


def _keys() -> Iterator[Finding]:
    for name, models in KEYS.items():
        present = bool(os.environ.get(name))
        yield Finding("keys", name, "yes" if present else "note", "set" if present else "", models)


def _finding(group: str, name: str, good: bool, found: str, remedy: str) -> Finding:
    return Finding(group, name, "yes", found) if good else Finding(group, name, "no", "", remedy)


def _version(path: str | None) -> str:
    """The last number-like word of `path --version`, with the path; empty without a path."""
    if path is None:
        return ""
    words = [word.strip(",()") for word in (printed_by(path, "--version") or "").split()]
    numbers = [word for word in words if word[:1].isdigit() and "." in word]
    return f"{numbers[0]} at {path}" if numbers else path


def finding_lines(findings: Iterable[Finding]) -> Iterator[Line]:
    styles = {"yes": "green", "no": "red", "note": "dim"}
    for group, members in groupby(findings, key=lambda finding: finding.group):
        yield "bold", group
        for finding in members:
            mark = "-" if finding.state == "note" else finding.state
            text = ": ".join(part for part in (finding.found, finding.remedy) if part)
            yield styles[finding.state], f"  {mark:<4}{finding.name:<24}{text}"


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when something is missing.")
    ] = False,
) -> None:
    """Say what this machine can do: compilers, devices, profilers, isolation, space, keys."""
    findings = list(examine())
    missing = [finding for finding in findings if finding.state == "no"]
    if as_json:
        typer.echo(json.dumps({"ok": not missing, "findings": [asdict(f) for f in findings]}))
    else:
        print_lines(finding_lines(findings))
    raise typer.Exit(1 if strict and missing else 0)


if __name__ == "__main__":
    sys.exit(serve(command, "python -m agent.doctor"))
