"""Finished builds by content: safe under concurrent use, bounded in size, never half written.

Several processes may use one cache. An entry appears whole, by a rename, and goes whole, by a
rename: a reader finds all of it or nothing.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evaluator.builder.work_folder import PREFIX, sweep, work_folder
from evaluator.errors import BuilderError

MOST_ENTRIES = 20_000
_PUTS = 64
"""Room is made after one in so many, by chance: no process need know of the others."""


class Cache:
    """Folders of files by key. An entry is never changed, and may go at any time."""

    def __init__(self, folder: Path, max_bytes: int, max_entries: int = MOST_ENTRIES) -> None:
        """No more is kept when room is made, but for the entry used last, however large. Raises
        `BuilderError` when the folder cannot be made."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BuilderError(f"the build cache {folder} cannot be made: {error}") from error

    def get(self, key: str) -> Path | None:
        """The entry's folder, marked as just used; it may go before it is read."""
        entry = self._folder / key
        try:
            os.utime(entry)
        except FileNotFoundError:
            return None
        except OSError:
            pass  # another user's: it may be read all the same
        return entry

    def read(self, key: str) -> dict[str, bytes] | None:
        entry = self.get(key)
        if entry is None:
            return None
        try:
            before = entry.stat()
            files = {path.name: path.read_bytes() for path in entry.iterdir()}
            # Nothing of an entry is removed before it is renamed: this one was whole.
            return files if os.path.samestat(before, entry.stat()) else None
        except FileNotFoundError:
            return None

    def put(self, key: str, files: Mapping[str, bytes]) -> Path:
        """Stores an entry; who comes second changes nothing. Raises `BuilderError`."""
        entry = self._folder / key
        try:
            with work_folder(self._folder) as work:
                made = work / "entry"
                made.mkdir()
                for name, content in files.items():
                    (made / name).write_bytes(content)
                    (made / name).chmod(0o444)
                made.chmod(0o755)
                try:
                    made.rename(entry)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
            if random.randrange(_PUTS) == 0:
                self._make_room()
        except OSError as error:
            raise BuilderError(
                f"the build cache {self._folder} cannot be written: {error}"
            ) from error
        return entry

    def _make_room(self) -> None:
        sweep(self._folder)
        entries = []
        for entry in self._folder.iterdir():
            if not entry.name.startswith(PREFIX):
                with suppress(FileNotFoundError, NotADirectoryError):
                    size = sum(file.stat().st_size for file in entry.iterdir())
                    entries.append((entry.stat().st_mtime_ns, size, entry.name))
        total, left = sum(size for _, size, _ in entries), len(entries)
        with work_folder(self._folder) as gone:
            for used_ns, size, name in sorted(entries)[:-1]:
                if total <= self._max_bytes and left <= self._max_entries:
                    break
                entry_folder = self._folder / name
                with suppress(OSError):  # removed by another process, or another user's
                    if entry_folder.stat().st_mtime_ns == used_ns:
                        entry_folder.rename(gone / name)
                        total, left = total - size, left - 1
