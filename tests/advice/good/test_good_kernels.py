"""The good kernels and their labels are well formed, as far as that shows without a GPU."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from evaluator.evaluation import Backend
from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel
from tests.advice.good.label import Label
from tests.advice.good.own import KERNELS
from tests.advice.good.published import PUBLISHED, Published, published_jobs
from tests.advice.good.table import Advised, advised, rows, table
from tests.advice.good.told import TOLD
from tests.advice.planted import CASES
from tests.advice.result import stored
from tests.nvcc import needs_nvcc
from tools.advice.rules import GPU_ADVICE

RESULTS = Path(__file__).parents[1] / "h200.tar.xz"
GOOD = Path(__file__).parent / "h100.tar.xz"
TABLE = Path(__file__).parent / "h100.md"

by_name = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
of_all = pytest.mark.parametrize("kernel", (*KERNELS, *PUBLISHED), ids=lambda kernel: kernel.name)


def test_there_are_enough_of_them_and_their_names_differ() -> None:
    assert len(KERNELS) >= 16 and len(PUBLISHED) >= 16
    everyone = [*KERNELS, *PUBLISHED]
    assert len({kernel.name for kernel in everyone}) == len(everyone)


@of_all
def test_a_label_is_well_formed(kernel: GoodKernel | Published) -> None:
    label = kernel.label
    assert label.limited_by.endswith(".") and label.right_advice.endswith(".")
    assert label.must_not and label.should
    assert all(isinstance(claim, Claim) for claim in (*label.must_not, *label.should))
    assert not label.must_not & set(label.should)
    assert Claim.STOP not in label.must_not
    assert Claim.LOWER_PRECISION in label.must_not and Claim.USE_TENSOR_CORES in label.must_not


@by_name
def test_a_kernel_is_well_formed(kernel: GoodKernel) -> None:
    reference = {node.name for node in ast.parse(kernel.reference).body if hasattr(node, "name")}
    assert reference == {"Model", "get_inputs", "get_init_inputs"}
    tree = ast.parse(kernel.source)
    assert "ModelNew" in [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    job = kernel.job("cuda:0", 0.1)
    assert (job.case, job.side) == (kernel.name, "good")
    assert job.request.candidate.source == kernel.source
    assert (job.build is not None) == ("__global__" in kernel.source)
    is_triton = job.request.candidate.backend is Backend.TRITON
    assert is_triton == kernel.name.startswith("triton_")
    if job.build is not None:
        assert job.build.name == f"good_{kernel.name}" and job.build.with_cuda


@pytest.mark.parametrize("kernel", PUBLISHED, ids=lambda kernel: kernel.name)
def test_a_published_kernel_is_named_by_task_and_hash(kernel: Published) -> None:
    assert re.fullmatch(r"level_[123]_problem_\d*[13579]", kernel.task)
    assert re.fullmatch(r"[0-9a-f]{64}", kernel.sha256)


def test_every_rule_has_its_claims() -> None:
    assert set(TOLD) == {rule.name for rule in GPU_ADVICE}
    assert all(TOLD.values())


def test_no_good_kernel_is_told_what_its_label_rules_out() -> None:
    """Of those that were profiled on a GPU: all of them."""
    found = advised(GOOD)
    assert len(found) == len(KERNELS) + len(PUBLISHED)
    assert {each.name: sorted(each.misled) for each in found if each.misled} == {}
    assert TABLE.read_text() == table(GOOD), f"python -m tests.advice.good.table {GOOD} > {TABLE}"


def test_a_kernel_that_is_told_what_its_label_rules_out_is_counted() -> None:
    """With a result of a planted kernel, whose loads are not coalesced."""
    case = next(case for case in CASES if case.name == "row_sums")
    result = stored(RESULTS)[case.name, "planted"]
    for ruled_out, misled in [(Claim.COALESCE, 1), (Claim.AVOID_ATOMICS, 0)]:
        label = Label("It.", "Stop.", frozenset({ruled_out}))
        lines = list(rows([Advised(case.name, label, case.source("planted"), result)]))
        assert "`uncoalesced_loads`" in lines[2]
        assert lines[-1].startswith(f"Of 1 good kernels {misled} are told")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one labelled kernel and its problem."""
    kernel = KERNELS[0]
    (tmp_path / "kernels").mkdir()
    (tmp_path / "problems/level1").mkdir(parents=True)
    (tmp_path / "kernels/level_1_problem_3_sample_0_kernel.py").write_text(kernel.source)
    (tmp_path / "problems/level1/3_task.py").write_text(kernel.reference)
    digest = hashlib.sha256(kernel.source.encode()).hexdigest()
    label = Label("It.", "Stop.", frozenset({Claim.COALESCE}))
    monkeypatch.setattr(
        "tests.advice.good.published.PUBLISHED", (Published("level_1_problem_3", digest, label),)
    )
    return tmp_path


def test_a_published_kernel_is_judged_on_its_problem(folder: Path) -> None:
    (job,) = published_jobs(folder / "kernels", folder / "problems", "cuda:0", 0.1)
    assert job.case == "published_level_1_problem_3"
    assert job.request.candidate.source == KERNELS[0].source
    assert job.request.problem_id.startswith("level1_3") and job.build is None


def test_a_label_holds_for_no_other_text(folder: Path) -> None:
    with (folder / "kernels/level_1_problem_3_sample_0_kernel.py").open("a") as file:
        file.write("#\n")
    with pytest.raises(ValueError, match="not the kernel"):
        published_jobs(folder / "kernels", folder / "problems", "cuda:0", 0.1)


@pytest.mark.slow
@needs_nvcc
@by_name
def test_a_kernel_builds(kernel: GoodKernel, shared_cache: Path) -> None:
    build = kernel.job("cuda:0", 0.1).build
    if build is not None:
        outcome = Builder(shared_cache, cuda_arch="9.0a").build(build)
        assert outcome.ok and outcome.headers == "light", outcome.log
