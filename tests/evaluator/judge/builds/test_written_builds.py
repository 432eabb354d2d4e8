from __future__ import annotations

import pytest

from evaluator.judge.builds.written_builds import written_builds

INLINE = "from torch.utils.cpp_extension import load_inline"


@pytest.mark.parametrize(
    ("source", "builds"),
    [
        (f"{INLINE}\nload_inline('a', '')", 1),
        (f"{INLINE}\ndef f():\n    return load_inline('a', '')\nload_inline('b', '')", 2),
        (f"{INLINE} as build\nclass A:\n    def f(self): build('a', '')", 1),
        ("from torch.utils.cpp_extension import load, load_inline\nload('a', [])", 1),
        ("import torch.utils.cpp_extension\ntorch.utils.cpp_extension.load('a', [])", 1),
        ("import torch.utils.cpp_extension as ext\next.load('a', [])\next.load_inline('b')", 2),
        ("from torch.utils import cpp_extension as ext\nlambda: ext.load_inline('a')", 1),
        ("from torch.utils import cpp_extension\ncpp_extension.load_inline('a')", 1),
        (f"import functools\n{INLINE}\nbuild = functools.partial(load_inline, 'a')", 1),
        ("import torch, json\ntorch.load('a')\njson.load('b')\ndef load(x): return load(x)", 0),
        (f"{INLINE}\nclass ModelNew: pass", 0),
        ("load_inline(", 0),
        ("load_inline('a')\0", 0),
        ("(" * 10_000, 0),
        ("-" * 100_000 + "1", 0),
    ],
)
def test_what_the_text_asks_for(source: str, builds: int) -> None:
    assert written_builds(source) == builds
