import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.prompt.answer import extract

KERNEL = """\
# plan: fuse both steps
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x + 1
"""
HELPER = "import torch\nimport torch.nn as nn\n\n\ndef double(x):\n    return x * 2\n"
CLASS_ONLY = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return double(x)\n"


def fenced(code: str, tag: str = "python", mark: str = "```") -> str:
    return f"{mark}{tag}\n{code}{mark}\n"


@pytest.mark.parametrize(
    "tag", ["python", "", "py", "cuda", "Python", "{.python}", "python title=a"]
)
def test_any_tag_or_none(tag):
    found = extract(f"Here it is.\n\n{fenced(KERNEL, tag)}\nGood luck with ModelNew!", "stop")
    assert found.source == KERNEL
    assert found.problem == ""
    assert found.plan == "fuse both steps"


def test_a_function_that_is_asked_for_is_as_good_as_a_module():
    assert extract(fenced(HELPER), "stop").source is None
    assert extract(fenced(HELPER), "stop", ("double",)).source == HELPER
    assert extract(HELPER, "stop", ("double",)).source == HELPER
    assert extract(fenced(KERNEL), "stop", ("double",)).source == KERNEL
    missing = extract(fenced("x = 1\n"), "stop", ("double",))
    assert missing.source is None and "`double`" in missing.problem


@pytest.mark.parametrize(
    "text",
    [
        KERNEL,
        "\ufeff" + KERNEL,
        "\n\n" + KERNEL + "\n",
        KERNEL.replace("\n", "\r\n"),
        "I would fuse both steps.\n\n" + KERNEL,
    ],
)
def test_no_fence_at_all(text):
    assert extract(text, "stop").source == KERNEL


def test_indented_fence_in_a_list():
    indented = "".join(f"   {line}\n" if line else "\n" for line in fenced(KERNEL).split("\n"))
    assert extract("1. The kernel:\n\n" + indented, "stop").source == KERNEL
    bulleted = "- " + fenced(KERNEL).replace("\n", "\n  ")
    assert extract(bulleted, "stop").source == KERNEL


@pytest.mark.parametrize(
    "inside",
    [
        'NOTE = """\n```\nnot the end\n```\n"""\n',
        'NOTE = """\n```cpp\nint x;\n```\nmore\n```\nand\n```\n"""\n',
        'NOTE = "``` in one line"\n',
        "# ``` in a comment\n",
        'NOTE = """\n~~~\n```\n"""\n',
    ],
)
@pytest.mark.parametrize("unfenced", [False, True])
def test_fences_inside_strings_end_nothing(inside, unfenced):
    code = KERNEL + "\n\n" + inside
    text = code if unfenced else f"First.\n\n{fenced(code)}\nDone.\n"
    assert extract(text, "stop").source == code


def test_the_last_block_that_defines_it_wins():
    better = KERNEL.replace("x + 1", "1 + x")
    text = fenced(KERNEL) + "Better:\n" + fenced(better) + "Use:\n" + fenced("m = Model()\n")
    assert extract(text, "stop").source == better


def test_a_file_split_over_blocks_is_joined_in_its_order():
    text = f"Helper:\n{fenced(HELPER)}\nUnrelated:\n{fenced('other = 1')}\n{fenced(CLASS_ONLY)}"
    source = extract(text, "stop").source
    assert source is not None
    assert source.index("def double") < source.index("class ModelNew")
    assert "other" not in source


def test_a_helper_after_the_class_is_joined_too():
    head = "import torch.nn as nn\n\n\n" + CLASS_ONLY
    source = extract(fenced(head) + fenced("def double(x):\n    return x * 2\n"), "stop").source
    assert source is not None
    assert source.index("class ModelNew") < source.index("def double")


def test_a_class_cut_in_the_middle_is_joined():
    head, tail = KERNEL.split("        return")
    source = extract(fenced(head) + "and then\n" + fenced("        return" + tail), "stop").source
    assert source is not None
    ast.parse(source)
    assert "return x + 1" in source


def test_nested_and_forgotten_fences():
    assert extract("````markdown\n" + fenced(KERNEL) + "````\n", "stop").source == KERNEL
    assert extract("```markdown\n" + fenced(KERNEL) + "```\n", "stop").source == KERNEL
    forgotten = "```python\nimport torch\n\nNo, better so:\n\n" + fenced(KERNEL)
    assert extract(forgotten, "stop").source == KERNEL


def test_an_unclosed_block_counts_when_it_is_whole():
    assert extract("```python\n" + KERNEL, "stop").source == KERNEL
    assert extract("```python\n" + KERNEL, "length").source == KERNEL
    assert extract("```python\n" + KERNEL.rstrip() + "```", "stop").source == KERNEL


def test_cut_off_by_the_token_limit():
    cut = extract("```python\n" + KERNEL[: KERNEL.index("x + 1") + 3] + "(", "length")
    assert cut.source is None
    assert "cut off by the token limit" in cut.problem
    assert cut.plan == "fuse both steps"
    before = extract(fenced(KERNEL) + "or\n```python\nclass ModelNew(nn.Mod", "length")
    assert before.source == KERNEL


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("class ModelNew should inherit from nn.Module, I think.", "no code block"),
        ("I can't do this: class ModelNew(nn.Module) would need CUDA.", "no code block"),
        (fenced("class Model:\n    pass\n"), "defines `Model`, but no top-level class"),
        (fenced("x = 1\n"), "No code block defines"),
        (fenced("class ModelNew(:\n    pass\n"), "does not parse (line 1: invalid syntax)"),
        (fenced("int main() { return 0; }\n", "cpp"), "only `cpp`"),
        (fenced("def f():\n    class ModelNew:\n        pass\n"), "No code block defines"),
        (fenced(""), "no code block"),
    ],
)
def test_what_is_missing_is_said(text, said):
    found = extract(text, "stop")
    assert found.source is None
    assert said in found.problem
    assert "class ModelNew(nn.Module)" in found.problem  # what to send


def test_a_null_byte_and_deep_nesting_are_no_python():
    assert extract(fenced(KERNEL + "\0"), "stop").source is None
    deep = "class ModelNew:\n    x = " + "(" * 5000 + ")" * 5000 + "\n"
    assert extract(fenced(deep), "stop").source is None


def test_a_module_bound_by_a_branch_or_an_assignment_counts():
    for code in (
        "if True:\n    class ModelNew:\n        pass\n",
        "class Fast:\n    pass\n\n\nModelNew = Fast\n",
    ):
        assert extract(fenced(code), "stop").source == code


def test_nothing_is_executed(tmp_path):
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()\n{KERNEL}"
    assert extract(fenced(code), "stop").source == code
    assert not mark.exists()


pieces = st.lists(
    st.sampled_from(
        [
            "```",
            "```python",
            "~~~",
            "````",
            "\n",
            "class ModelNew:",
            "    pass",
            '"""',
            "# plan: a",
            "import torch",
            "x = (",
            ")",
            " ",
            "\\",
            "\r",
            "\x0c",
            "- ```py",
            "def f():",
            "'",
            "\0",
        ]
    )
    | st.text(max_size=8),
    max_size=30,
)


def test_escapes_in_kernel_strings_are_no_error():
    code = KERNEL + 'CPP = "printf(\\d)"\n'
    assert extract(fenced(code), "stop").source == code


@given(
    st.one_of(st.text(), pieces.map("\n".join), pieces.map("".join)),
    st.sampled_from(["stop", "length"]),
)
@example("```python\nclass ModelNew:\n" * 20_000, "length")
@example("```\n" * 3000, "stop")
@example("(" * 100_000, "stop")
@example("ModelNew" + "-" * 100_000 + "1", "stop")
@settings(max_examples=300)
def test_any_text_gives_an_extraction(text, finish_reason):
    found = extract(text, finish_reason)
    assert (found.source is None) == bool(found.problem)
    assert "\n" not in found.plan
    if found.source is not None:
        ast.parse(found.source)
        assert "ModelNew" in found.source


prose = st.text(
    st.characters(blacklist_characters="`~\0", blacklist_categories=["Cs"]), max_size=60
)


@given(
    before=prose.filter(lambda t: "ModelNew" not in t),
    after=prose.filter(lambda t: "ModelNew" not in t),
    note=st.text(st.sampled_from("ab `~\n'\"\\#"), max_size=40),
    names=st.lists(st.from_regex(r"[a-z]{1,6}_", fullmatch=True), max_size=4, unique=True),
    mark=st.sampled_from(["```", "~~~", "`````"]),
    tag=st.sampled_from(["python", "", "cpp"]),
)
@settings(max_examples=200)
def test_a_module_between_fences_comes_back(before, after, note, names, mark, tag):
    lines = [f"{name} = {note!r}" for name in names]
    code = "\n".join(["# plan: p", *lines, "class ModelNew:", *(f"    {n} = 1" for n in names)])
    code += f"\n    note = {note!r}\n"
    text = f"{before}\n{mark}{tag}\n{code}{mark}\n{after}"
    assert extract(text, "stop").source == code
