"""A Python source file as text, decoded as Python decodes what it imports."""

from __future__ import annotations

import codecs
import io
import tokenize
from pathlib import Path

from problems.errors import UndecodableError, UsageError
from problems.plain_file import open_plain

MOST_BYTES = 4 * 2**20
_QUADRATIC = ("punycode", "idna")
"""Codecs that would decode a file of this size for minutes."""


def read_source(path: Path, *, follows: bool = True) -> str:
    """Reads a file by its byte order mark or its encoding declaration (PEP 263), else as UTF-8.

    Raises `UndecodableError` where Python could not decode it either, and `UsageError` for a file
    that cannot be read; `follows` as in `open_plain`.
    """
    try:
        with open_plain(path, MOST_BYTES, follows=follows) as file:
            # Not `file.readline`: an error would name the descriptor as the file.
            encoding, _ = tokenize.detect_encoding(lambda: file.readline(MOST_BYTES))
            if codecs.lookup(encoding).name in _QUADRATIC:
                raise LookupError(f"{encoding} is no encoding for source files")
            file.seek(0)
            with io.TextIOWrapper(file, encoding) as lines:
                text = lines.read(MOST_BYTES)
        # Some encodings, such as raw_unicode_escape, give halves of characters.
        text.encode()
        return text
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from None
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UndecodableError(
            f"can't read {path}: {error}; save it as UTF-8, or declare its encoding"
        ) from None
