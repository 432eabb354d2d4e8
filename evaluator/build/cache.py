"""Finished builds by content: safe under concurrent use, bounded in size, never half written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from evaluator.errors import BuilderError


class Cache:
    """Folders of files by key. An entry appears whole, by a rename, and is never changed."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Raises BuilderError when the folder cannot be made."""
        self._folder = folder
        self._max_bytes = max_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BuilderError(f"the build cache {folder} cannot be made: {error}") from error

    def get(self, key: str) -> Path | None:
        """The entry's folder, marked as just used."""
        entry = self._folder / key
        try:
            os.utime(entry)
        except FileNotFoundError:
            return None
        return entry

    def put(self, key: str, files: Mapping[str, bytes | Path]) -> Path:
        """Stores an entry: contents, or files to be moved in; who comes second changes nothing."""
        entry = self._folder / key
        try:
            made = Path(tempfile.mkdtemp(dir=self._folder, prefix=".making-"))
            try:
                for name, content in files.items():
                    target = made / name
                    if isinstance(content, Path):
                        shutil.copyfile(content, target)
                    else:
                        target.write_bytes(content)
                    target.chmod(0o444)
                made.chmod(0o755)
                made.rename(entry)
            except OSError:
                if not entry.exists():
                    raise
            finally:
                shutil.rmtree(made, ignore_errors=True)
            self._shrink()
        except OSError as error:
            raise BuilderError(
                f"the build cache {self._folder} cannot be written: {error}"
            ) from error
        return entry

    def _shrink(self) -> None:
        entries = []
        for entry in os.scandir(self._folder):
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            try:
                size = sum(file.stat().st_size for file in os.scandir(entry.path))
                entries.append((entry.stat().st_mtime, size, entry.path))
            except FileNotFoundError:
                continue
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries)[:-1]:
            if total <= self._max_bytes:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= size
