from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.worker.build_stub import placed


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "built"
    path.write_bytes(b"one")
    return path


@pytest.fixture
def extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "extensions"
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(folder))
    return folder


def test_it_lies_where_pytorch_puts_it(library: Path, extensions: Path) -> None:
    assert placed(library, "mine", None) == extensions / "mine" / "mine.so"
    assert (extensions / "mine" / "mine.so").read_bytes() == b"one"


def test_the_callers_folder_counts(
    library: Path, extensions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    assert placed(library, "mine", tmp_path / "own") == tmp_path / "own" / "mine.so"
    monkeypatch.chdir(tmp_path)
    assert placed(library, "other", "own") == tmp_path / "own" / "other.so"
    assert not extensions.exists()


@pytest.mark.parametrize("asked", ["nowhere", "/dev/null"])
def test_a_folder_that_cannot_be_written_to_is_not_used(
    library: Path, extensions: Path, asked: str
) -> None:
    assert placed(library, "mine", asked) == extensions / "mine" / "mine.so"


def test_what_is_loaded_already_stays_as_it_is(library: Path, extensions: Path) -> None:
    first = placed(library, "mine", None)
    node = first.stat().st_ino
    library.write_bytes(b"two")
    assert placed(library, "mine", None) == extensions / "mine" / "mine_v1.so"
    library.write_bytes(b"one")
    assert placed(library, "mine", None) == first
    assert (first.stat().st_ino, first.read_bytes()) == (node, b"one")
