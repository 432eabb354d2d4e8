from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.deep_audit.address_sanitizer import runtimes


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    runtimes.cache_clear()
    yield
    runtimes.cache_clear()


def compiler(path: Path, version: str, answer: str) -> str:
    """A program that answers as a compiler would."""
    lines = [
        "#!/bin/sh",
        f"case $1 in --version) echo '{version}';; *) echo {answer};; esac",
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return str(path)


def test_gcc_brings_the_sanitizer_and_the_library_that_it_needs() -> None:
    names = [path.name for path in runtimes()]
    assert len(names) == 2
    assert names[0].startswith("libasan.so") and names[1].startswith("libstdc++.so")


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        # Not installed: the bare name comes back.
        ("g++ 12.2.0", '"${1#*=}"'),
        # Clang may find GCC's, which do not fit what it compiles.
        ("clang version 17.0.6", __file__),
    ],
)
def test_without_gccs_sanitizers_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, answer: str
) -> None:
    monkeypatch.setenv("CXX", compiler(tmp_path / "compiler", version, answer))
    assert runtimes() == ()
    monkeypatch.setenv("CXX", str(tmp_path / "no such compiler"))
    runtimes.cache_clear()
    assert runtimes() == ()
