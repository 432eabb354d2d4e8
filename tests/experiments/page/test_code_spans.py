"""Kernels as spans: every character once, and C++ within Python seen as C++."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.page.code_spans import CLASSES, code_spans

KERNEL = '''# plan: two rows a thread
import torch
SOURCE = r"""
#include <cmath>
__global__ void twice(float* x) { x[0] *= 2.5f; } // doubled
"""
class ModelNew(torch.nn.Module):
    name = "plain"
'''


def coloured(source: str) -> list[tuple[str, str]]:
    spans, at, found = code_spans(source), 0, []
    units = source.encode("utf-16-le", "surrogatepass")
    for kind, length in zip(spans[::2], spans[1::2], strict=True):
        text = units[2 * at : 2 * (at + length)].decode("utf-16-le", "surrogatepass")
        found.append((CLASSES[kind], text))
        at += length
    return found


def test_python_and_the_cpp_in_it_are_told_apart() -> None:
    found = coloured(KERNEL)
    assert ("comment", "# plan: two rows a thread") in found
    assert ("keyword", "class") in found
    assert ("name", "ModelNew") in found
    assert ("string", '"plain"') in found
    assert any(kind == "preprocessor" and "include" in text for kind, text in found)
    assert ("type", "float") in found
    assert ("number", "2.5f") in found
    assert any(kind == "comment" and "doubled" in text for kind, text in found)


@given(st.text(st.characters(codec="utf-8")))
def test_every_character_is_in_one_span(text: str) -> None:
    for source in (text, f'x = """{text}\n#include;\n"""\n'):
        assert "".join(piece for _, piece in coloured(source)) == source
