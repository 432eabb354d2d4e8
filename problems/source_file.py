"""A Python source file as text, decoded as Python decodes what it imports."""

from __future__ import annotations

import tokenize
from pathlib import Path

from problems.errors import UndecodableError, UsageError


def read_source(path: Path) -> str:
    """Reads a file by its byte order mark or its encoding declaration (PEP 263), else as UTF-8.

    Raises `UndecodableError` where Python could not decode it either, and `UsageError` for a file
    that cannot be read.
    """
    try:
        with tokenize.open(path) as file:
            text = file.read()
        # Some encodings, such as raw_unicode_escape, give halves of characters.
        text.encode()
        return text
    except OSError as error:
        raise UsageError(f"can't read {path}: {error}") from None
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UndecodableError(
            f"can't read {path}: {error}; save it as UTF-8, or declare its encoding"
        ) from None
