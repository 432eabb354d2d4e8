"""What is told of real failed builds: `broken_builds` says which, and how their logs were made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from tests.evaluator.made_evaluations import unbuilt
from tests.tools.diagnosis.broken_builds import ARCHITECTURE, BROKEN, LOGS, Broken
from tools.diagnosis.diagnose import explain
from tools.diagnosis.inline_layout import inline_layout

_QUOTED = re.compile(r"^(?P<mark>[> ]) +(?P<number>\d+) \| (?P<text>.*)$", re.MULTILINE)
_PATH = re.compile(r"(?:^|[\s'\"(])/\w+/|work-|tmpxft|site-packages")


def words_of(broken: Broken, log: str) -> str:
    return explain(unbuilt(log), broken.source)


def assert_told(broken: Broken, words: str) -> None:
    """All that the words of a failed build must hold, and what they must not."""
    assert broken.first in words.splitlines()[0]
    source = broken.source.splitlines()
    quoted = list(_QUOTED.finditer(words))
    for match in quoted:
        assert match["text"] == source[int(match["number"]) - 1]
    if broken.line:
        assert any(match["mark"] == ">" and broken.line in match["text"] for match in quoted), words
    for text in broken.also:
        assert text in words
    assert not _PATH.search(words)
    assert len(words.splitlines()) <= 26 and len(words) <= 3000


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_build_is_told(name: str) -> None:
    broken = BROKEN[name]
    assert_told(broken, words_of(broken, LOGS.joinpath(f"{name}.txt").read_text()))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["redefinition", "cuda_global_value"])
def test_what_the_compilers_of_this_machine_say(name: str, shared_cache: Path) -> None:
    broken = BROKEN[name]
    outcome = Builder(shared_cache, cuda_arch=ARCHITECTURE).build(broken.request)
    assert not outcome.ok and outcome.headers == "light"
    assert_told(broken, words_of(broken, outcome.log))


@pytest.mark.parametrize("name", ["deduction", "cuda_half", "link"])
def test_without_the_source_no_line_is_quoted(name: str) -> None:
    words = explain(unbuilt(LOGS.joinpath(f"{name}.txt").read_text()), "")
    assert "First error" in words and not _QUOTED.search(words)
    assert BROKEN[name].line not in words or not BROKEN[name].line


def test_the_layout_follows_lists_positions_and_names() -> None:
    source = '''first = r"""
int a();
"""
load_inline('k', [first, "int b();"], r"""
int c();""",
            functions=['b'], no_implicit_headers=False)
'''
    layout = inline_layout(source)
    # Three lines of headers, then the string's own, whose first one is empty.
    assert layout["cuda.cu"] == {4: 4, 5: 5}
    # One line of headers, three of the first string, one of the second, then the bindings.
    assert layout["main.cpp"] == {2: 1, 3: 2, 4: 3, 5: 4, 7: 4}


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def f(:",
        "load_inline('k', text + more)",
        "load_inline('k', unknown)",
        # Two extensions do not share a line.
        'load_inline("a", r"""\nint a();""")\n' * 2,
    ],
)
def test_no_layout_is_made_up(source: str) -> None:
    assert not any(inline_layout(source).values())
