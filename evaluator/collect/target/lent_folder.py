"""A folder for temporary files that a candidate may own meanwhile: it goes, whatever it became."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluator.walls.scratch import remove


@contextlib.contextmanager
def lent_folder(prefix: str) -> Iterator[Path]:
    """A new one, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remove(folder)
