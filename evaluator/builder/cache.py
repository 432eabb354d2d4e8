"""Finished builds by content: safe under concurrent use, bounded in size, never half written.

Several processes may use one cache. An entry appears whole, by a rename, and goes whole, by a
rename: a reader finds all of it or nothing.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evaluator.builder.work_folder import PREFIX, sweep, work_folder
from evaluator.errors import BuilderError

MOST_ENTRIES = 20_000
_PUT = ".put"
"""A file that grows with what any process puts, by a byte for each `_UNIT_BYTES` begun, until one
of them makes room."""
_UNIT_BYTES = 2**16
_SHARE = 8
"""Room is made for this part of the cache at a time, and looked for again once that is used."""


class Cache:
    """Folders of files by key. An entry is never changed, and may go at any time."""

    def __init__(self, folder: Path, max_bytes: int, max_entries: int = MOST_ENTRIES) -> None:
        """No more is kept, but for what is just being put, and for the entry used last, however
        large. Raises `BuilderError` when the folder cannot be made."""
        self._folder = folder
        self._units = min(max_entries, max_bytes // _UNIT_BYTES) // _SHARE
        self._kept_bytes = max_bytes - self._units * _UNIT_BYTES
        self._kept_entries = max_entries - self._units
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
            handle = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with os.scandir(handle) as found:
                    files = {each.name: _content(each.name, handle) for each in found}
                # Nothing of an entry is removed before it is renamed: this one was whole.
                whole = os.path.samestat(os.fstat(handle), entry.stat())
            finally:
                os.close(handle)
        except FileNotFoundError:
            return None
        return files if whole else None

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
                full = self._counts(sum(map(len, files.values())))
                try:
                    made.rename(entry)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
            if full:
                self._make_room()
        except OSError as error:
            raise BuilderError(
                f"the build cache {self._folder} cannot be written: {error}"
            ) from error
        return entry

    def _counts(self, size_bytes: int) -> bool:
        """Whether the room that was made last is used up, by this process or another."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(self._folder / _PUT, flags, 0o666)
        try:
            os.write(handle, b"." * (1 + size_bytes // _UNIT_BYTES))
            if os.fstat(handle).st_size <= self._units:
                return False
            os.ftruncate(handle, 0)
            return True
        finally:
            os.close(handle)

    def _make_room(self) -> None:
        sweep(self._folder)
        entries = []
        with os.scandir(self._folder) as found:
            for entry in found:
                if entry.name.startswith((".", PREFIX)):
                    continue
                with suppress(FileNotFoundError, NotADirectoryError):
                    size = sum(file.stat().st_size for file in Path(entry.path).iterdir())
                    entries.append((entry.stat().st_mtime_ns, size, entry.name))
        total, left = sum(size for _, size, _ in entries), len(entries)
        with work_folder(self._folder) as gone:
            for used_ns, size, name in sorted(entries)[:-1]:
                if total <= self._kept_bytes and left <= self._kept_entries:
                    break
                entry_folder = self._folder / name
                with suppress(OSError):  # removed by another process, or another user's
                    if entry_folder.stat().st_mtime_ns == used_ns:
                        entry_folder.rename(gone / name)
                        total, left = total - size, left - 1


def _content(name: str, folder: int) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read()
