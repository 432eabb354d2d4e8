import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems.case import cases_of
from problems.errors import UsageError
from problems.loader import load_problem
from problems.sizes import SizeClass, count_hidden_sizes, with_sizes

SOURCE = '''"""Häuser: a docstring that is not ASCII."""
import torch

CATEGORY = "scan"  # ours
CPU_SIZES = {"rows": 8, "cols": 16}

rows = 4096  # häufig
cols: int = (
    2 * 4096
)
other = rows * 2


def get_inputs():
    rows = 3
    return [torch.randn(rows, cols)]
'''


def test_cpu_sizes_replace_values_and_metadata_disappears() -> None:
    assert with_sizes(SOURCE, SizeClass.CPU) == (
        SOURCE.replace('CATEGORY = "scan"  # ours\nCPU_SIZES = {"rows": 8, "cols": 16}\n\n', "")
        .replace("rows = 4096", "rows = 8")
        .replace("2 * 4096", "16")
    )


@pytest.mark.parametrize("size_class", SizeClass)
@pytest.mark.parametrize(
    "source",
    [
        "N = 3\r\nM = 'é'\r\n",
        "\tN = 3".lstrip(),
        "CATEGORY = 7\nN = CATEGORY\n",
        'CATEGORY = "read"\nprint(CATEGORY)\n',
        "CPU_SIZES = make()\n",
        "",
    ],
)
def test_a_plain_source_is_unchanged(source: str, size_class: SizeClass) -> None:
    assert with_sizes(source, size_class) == source


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ('CPU_SIZES = {"M": 1}\nN = 2\n', "'M', which no module-level assignment defines"),
        ('CPU_SIZES = {"N": 1}\ndef f():\n    N = 2\n', "'N', which no module-level"),
        ('CPU_SIZES = {"N": 1}\nN = M = 2\n', "'N', which no module-level"),
        ('CPU_SIZES = {N: 1}\n"N"\nX = 2\n', "key that is no string"),
        ('N = 2; CPU_SIZES = {"N": 1}\n', "lines of their own"),
        ("N = = 2\n", "line 1: invalid syntax"),
    ],
)
def test_mistakes_are_told_in_one_line(source: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_sizes(source, SizeClass.CPU)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


names = st.from_regex(r"[a-z][a-z_]{0,6}", fullmatch=True).map(lambda name: f"v_{name}")
comments = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12)


@given(
    sizes=st.dictionaries(names, st.tuples(st.integers(), st.integers()), min_size=1, max_size=5),
    replaced=st.data(),
    comment=comments,
    newline=st.sampled_from(["\n", "\r\n"]),
    before=st.booleans(),
)
def test_only_the_named_values_change(
    sizes: dict[str, tuple[int, int]],
    replaced: st.DataObject,
    comment: str,
    newline: str,
    before: bool,
) -> None:
    chosen = replaced.draw(st.sets(st.sampled_from(sorted(sizes))))
    table = ", ".join(f'"{name}": {sizes[name][1]}' for name in sorted(chosen))
    metadata = ['CATEGORY = "x"', f"CPU_SIZES = {{{table}}}"]
    constants = [f"{name} = {large}  # {comment}" for name, (large, _) in sizes.items()]
    rest = [f"text = {comment!r}", "def get_inputs():", f"    return [{', '.join(sizes)}]"]
    lines = [*metadata, *constants] if before else [*constants, *metadata]
    source = newline.join([*lines, *rest])

    on_gpu = with_sizes(source, SizeClass.GPU)
    on_cpu = with_sizes(source, SizeClass.CPU)

    assert on_gpu == newline.join([*constants, *rest])
    small = [f"{name} = {sizes[name][name in chosen]}  # {comment}" for name in sizes]
    assert on_cpu == newline.join([*small, *rest])


HIDDEN = SOURCE.replace(
    "\n\nrows = 4096", '\nHIDDEN_SIZES = [{"cols": 3}, {"rows": 7, "cols": 1}]\n\nrows = 4096', 1
)


@pytest.mark.parametrize(
    ("size_class", "number", "rows", "cols"),
    [
        (SizeClass.CPU, None, "8", "16"),
        (SizeClass.CPU, 0, "8", "3"),
        (SizeClass.CPU, 1, "7", "1"),
        (SizeClass.GPU, 0, "4096", "3"),
        (SizeClass.GPU, 1, "7", "1"),
    ],
)
def test_hidden_sizes_come_after_those_of_the_class(size_class, number, rows, cols) -> None:
    namespace: dict[str, object] = {}
    text = with_sizes(HIDDEN, size_class, hidden=number)
    assert "HIDDEN" not in text and "CPU_SIZES" not in text
    exec(text.replace("import torch", ""), namespace)
    assert (str(namespace["rows"]), str(namespace["cols"])) == (rows, cols)


def test_hidden_sizes_are_counted() -> None:
    assert count_hidden_sizes(HIDDEN) == 2
    assert count_hidden_sizes(SOURCE) == 0
    assert count_hidden_sizes("HIDDEN_SIZES = [{}]\nprint(HIDDEN_SIZES)") == 0


def test_hidden_sizes_name_constants() -> None:
    with pytest.raises(UsageError, match="the sizes name 'depth'"):
        with_sizes(HIDDEN.replace('{"cols": 3}', '{"depth": 3}'), SizeClass.CPU, hidden=0)


CASES = SOURCE.replace(
    "\n\nrows = 4096",
    '\nCASES = [{"rows": 1, "weight": 1}, {"rows": 2**3, "cols": 3, "weight": 3}]\n\nrows = 4096',
    1,
)


def test_cases_are_sizes_with_weights_and_the_heaviest_comes_first() -> None:
    heavy, light = cases_of(CASES, SizeClass.CPU)
    assert (heavy.name, heavy.weight) == ("rows=2 ** 3, cols=3", 0.75)
    assert (light.name, light.weight) == ("rows=1", 0.25)
    text = with_sizes(SOURCE, SizeClass.CPU)
    assert light.reference == text.replace("rows = 8", "rows = 1")
    assert heavy.reference == text.replace("rows = 8", "rows = 2 ** 3").replace(
        "cols: int = (\n    16", "cols: int = (\n    3"
    )
    assert cases_of(SOURCE, SizeClass.CPU) == ()
    assert cases_of(CASES + "print(CASES)\n", SizeClass.CPU) == ()


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[{'rows': 1}]\nCASES: list = []", "CASES has a type"),
        ("3", "CASES is no list of sizes"),
        ("[4]", "sizes have a key that is no string"),
        ("[{'depth': 4}]", "the sizes name 'depth'"),
        ("[{'weight': 2}]", "a case without sizes"),
        ("[{'rows': 1, 'weight': 0}]", "a case has the weight 0; give"),
        ("[{'rows': 1, 'weight': -1}]", "a case has the weight -1; give"),
        ("[{'rows': 1, 'weight': float('nan')}]", "the weight float('nan'); give"),
        ("[{'rows': 1, 'weight': 10**400}]", "a case has the weight 10 ** 400; give"),
        ("[{'rows': 1, 'on': rows}]", "CASES can't be read"),
        ("[{'rows': 1, 'counts': 'zz'}]", "CASES can't be read"),
        ("[{'rows': 1, 'weight': 1e999}]", "a case has the weight 1e309; give"),
    ],
)
def test_wrong_cases_are_told_in_one_line(tmp_path, written, words) -> None:
    file = tmp_path / "task.py"
    file.write_text(f"class Model: pass\ndef get_init_inputs(): pass\nCASES = {written}\n{SOURCE}")
    with pytest.raises(UsageError, match=re.escape(words)) as error:
        load_problem(str(file))
    assert "\n" not in str(error.value)
