from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.hardware.device_lock import LOCKS


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go, and other users may pass; what stays there fails the test."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o711)
    monkeypatch.setenv(LOCKS, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert not list(place.iterdir())
    place.rmdir()
