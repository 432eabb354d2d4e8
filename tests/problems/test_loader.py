import hashlib
from pathlib import Path

import pytest

import problems
from problems.errors import UnknownProblemError, UsageError
from problems.loader import load_problem, load_suite, select
from problems.sizes import SizeClass

SUITE = Path(__file__).parent.parent / "data" / "suite"
GOOD = """import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    return []

def get_init_inputs():
    return []
"""


def test_a_foreign_suite_is_loaded_as_it_stands() -> None:
    loaded = load_suite(SUITE)
    assert [p.id for p in loaded][:3] == [
        "level1_1_Square_matrix_multiplication_",
        "level1_19_ReLU",
        "level1_40_TopK_and_norm",
    ]
    assert {p.level for p in loaded} == {1, 2, 4}
    for problem in loaded:
        assert problem.suite == "suite"
        assert problem.category
        assert problem.source == problem.path.read_text(encoding="utf-8")
        assert problem.hash == hashlib.sha256(problem.source.encode()).hexdigest()[:16]
        for size in SizeClass:
            assert problem.reference(size) == problem.source


@pytest.mark.parametrize(
    "ref",
    ["level1_19_ReLU", "LEVEL1_19_relu", "1/19", "level1/19_ReLU", "level1/19", "19_ReLU", "relu"],
)
def test_a_problem_has_aliases(ref: str) -> None:
    assert load_problem(ref, SUITE).id == "level1_19_ReLU"


def test_a_path_into_a_suite_is_that_problem() -> None:
    foreign = load_problem(str(SUITE / "level1" / "19_ReLU.py"))
    assert (foreign.id, foreign.suite, foreign.level) == ("level1_19_ReLU", "suite", 1)
    own = Path(problems.__file__).parent / "level1" / "1_swish.py"
    assert load_problem(str(own)) == load_problem("1/1")


def test_a_path_is_no_name_where_files_are_not_wanted() -> None:
    own = Path(problems.__file__).parent / "level1" / "1_swish.py"
    for ref in (str(own), "~nobody/1_swish.py", "\0", ""):
        with pytest.raises(UnknownProblemError):
            load_problem(ref, files=False)
    assert load_problem("1_swish.py", files=False) == load_problem("1/1")


def test_a_lone_file_is_named_by_its_stem(tmp_path: Path) -> None:
    path = tmp_path / "my kernel.py"
    path.write_text(GOOD)
    problem = load_problem(str(path))
    assert (problem.id, problem.level, problem.name) == ("my_kernel", 0, "my kernel")
    assert problem.suite == tmp_path.name


def test_loading_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text(GOOD + "\nraise SystemExit('executed')\n")
    assert load_problem(str(path)).id == "loud"


def _suite(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "level1").mkdir()
    for name, source in files.items():
        (tmp_path / "level1" / f"{name}.py").write_text(source)
    return tmp_path


def test_a_shared_name_needs_a_level(tmp_path: Path) -> None:
    suite = _suite(tmp_path, **{"1_same": GOOD, "2_same": GOOD})
    with pytest.raises(UsageError, match=r"the name of 2 problems .* level1_1_same, level1_2_same"):
        load_problem("same", suite)


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("level1_7_rms_nrom", "did you mean level1_7_rms_norm"),
        ("zzzzzz", "`kernel-refinery problems` names all"),
        ("nowhere/kernel.py", "no such file"),
    ],
)
def test_an_unknown_problem(ref: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_problem(ref)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (GOOD.replace("class Model", "class Net"), "defines no Model"),
        (GOOD.replace("get_inputs", "inputs"), "defines no get_inputs;"),
        ("x = 1", "no Model and no get_inputs and no get_init_inputs"),
        (GOOD + "def broken(:\n", "line 12: "),
        ("x = '\0'", "null bytes; fix"),
    ],
)
def test_a_file_that_is_no_problem(tmp_path: Path, source: str, says: str) -> None:
    suite = _suite(tmp_path, **{"1_bad": source})
    for load in (lambda: load_suite(suite), lambda: load_problem("1/1", suite)):
        with pytest.raises(UsageError) as caught:
            load()
        assert says in str(caught.value)
        assert "1_bad.py" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(GOOD.encode() + b"# \xe9\n")
    with pytest.raises(UsageError, match="UTF-8"):
        load_problem(str(path))


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("", "utf-8-sig"), ("# -*- coding: latin-1 -*-\n", "latin-1"), ("# caf\xe9\n", "utf-8")],
)
def test_a_file_is_decoded_as_python_decodes_it(tmp_path: Path, head: str, encoding: str) -> None:
    path = tmp_path / "encoded.py"
    path.write_bytes((head + GOOD + "NAME = 'caf\xe9'\n").encode(encoding))
    source = load_problem(str(path)).source
    assert source == head + GOOD + "NAME = 'caf\xe9'\n"


def test_a_folder_without_levels(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no folder level1"):
        load_suite(tmp_path)
    with pytest.raises(UsageError, match="no such suite"):
        load_suite(tmp_path / "missing")


def test_select_narrows_down() -> None:
    suite = load_suite()
    assert {p.level for p in select(suite, level=2)} == {2}
    assert all(
        "norm" in p.id or p.category == "normalization" for p in select(suite, filter="NORM")
    )
    assert len(select(suite, filter="norm")) > 3
    assert [p.category for p in select(suite, filter="^scan$", limit=2)] == ["scan", "scan"]
    assert select(suite, limit=1) == suite[:1]
    assert select(suite, filter="no such thing") == []
    with pytest.raises(UsageError, match="no regular expression"):
        select(suite, filter="(")
