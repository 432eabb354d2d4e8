from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.toolchain import Cuda, Toolchain, Torch


def toolchain(version: str = "g++ 14") -> Toolchain:
    """One that is not there."""
    return Toolchain(
        compiler="c++",
        compiler_version=version,
        torch=Torch(Path("/torch"), "2.9", "-std=c++17"),
        python_include=Path("/python"),
        cuda=Cuda("nvcc", Path("/cuda"), "13.0"),
        architecture="9.0a",
    )


@pytest.mark.parametrize(
    ("flags", "named"),
    [(("-O3",), True), (("-O3", "-G"), False), (("--device-debug",), False)],
)
def test_device_code_names_its_lines_unless_it_is_for_a_debugger(
    flags: tuple[str, ...], named: bool
) -> None:
    tools = toolchain()
    assert ("-lineinfo" in tools.device_command("x", "cuda.cu", flags, None)) is named
    assert "-lineinfo" not in tools.host_command("x", "main.cpp", (), None)


@pytest.mark.parametrize(
    ("version", "there"),
    [("g++ (Debian 12.2.0-14) 12.2.0", True), ("Debian clang version 14.0.6", False)],
)
def test_gcc_looks_for_no_shorter_names_of_headers(version: str, *, there: bool) -> None:
    tools = toolchain(version)
    for make in (tools.host_command, tools.device_command):
        command = make("x", "main.cpp", (), None)
        assert any("-fno-canonical-system-headers" in word for word in command) is there
