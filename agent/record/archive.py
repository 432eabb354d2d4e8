"""A recorded run or study in one file, `NAME.tar.xz`."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path

from problems.cache_folder import cache_folder
from problems.errors import UsageError

SUFFIX = ".tar.xz"


def unpacked(path: Path | str) -> Path:
    """The folder NAME that an archive holds, in the cache folder; any other path as it is.

    Raises `UsageError` for an archive that cannot be unpacked.
    """
    path = Path(path)
    if not path.name.endswith(SUFFIX) or not path.is_file():
        return path
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    place = cache_folder() / "recordings" / digest
    folder = place / path.name.removesuffix(SUFFIX)
    if not folder.is_dir():
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place) as draft, tarfile.open(path) as archive:
                archive.extractall(draft, filter="data")
                try:
                    (Path(draft) / folder.name).rename(folder)
                except OSError:
                    # Another process may have unpacked it meanwhile.
                    if not folder.is_dir():
                        raise
        except (OSError, tarfile.TarError) as error:
            raise UsageError(f"{path} cannot be unpacked ({error})") from error
    return folder
