"""Code as spans that a page can colour: classes and lengths, never HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

CLASSES = ("", "keyword", "string", "comment", "number", "name", "type", "preprocessor")
"""What a span's first number stands for; the page has a colour for each."""

_OPENING = re.compile(r"[a-zA-Z]*(\"\"\"|''')")
_CPP = re.compile(r"#include|#pragma|__global__|[;{]\s*$", re.MULTILINE)


def code_spans(source: str) -> tuple[int, ...]:
    """The spans of a kernel: Python, with C++ or CUDA in its long strings.

    Flat: class, length, class, length, ... Lengths are UTF-16 code units, as JavaScript counts.
    """
    spans: list[int] = []
    for kind, text in _pieces(source):
        length = len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
        if spans and spans[-2] == kind:
            spans[-1] += length
        elif length:
            spans += [kind, length]
    return tuple(spans)


def _pieces(source: str) -> Iterator[tuple[int, str]]:
    from pygments.token import String

    literal = ""
    for _, token, text in _lexer("python").get_tokens_unprocessed(source):
        if token in String and token not in String.Doc:
            literal += text
            continue
        yield from _literal(literal)
        literal = ""
        yield _class_of(token), text
    yield from _literal(literal)


def _literal(text: str) -> Iterator[tuple[int, str]]:
    """A string literal; one that holds C++ is coloured as such."""
    string = CLASSES.index("string")
    opening = _OPENING.match(text)
    if opening is None or not _CPP.search(text):
        yield string, text
        return
    begin, end = opening.end(), len(text) - 3 * text.endswith(opening[1])
    yield string, text[:begin]
    for _, token, piece in _lexer("cuda").get_tokens_unprocessed(text[begin:end]):
        yield _class_of(token), piece
    yield string, text[end:]


@cache
def _lexer(name: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(name)


@cache
def _class_of(token: _TokenType) -> int:
    from pygments.token import Comment, Keyword, Name, Number, String

    for kind, name in (
        (Comment.Preproc, "preprocessor"),
        (Comment.PreprocFile, "string"),
        (Comment, "comment"),
        (Keyword.Type, "type"),
        (Keyword, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Name.Function, "name"),
        (Name.Class, "name"),
        (Name.Decorator, "name"),
    ):
        if token in kind:
            return CLASSES.index(name)
    return 0
