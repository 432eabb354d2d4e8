import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.judge.correctness.comparison import compare
from evaluator.protocol import RULES
from evaluator.settings import Precision
from tests.evaluator.judge.correctness.calibration import (
    Case,
    cases,
    matmul_sequential,
    rand,
    randn,
    rounded,
    sequential,
)

KERNELBENCH = RULES["kernelbench"]
CASES = {case.name: case for case in cases()}
HONEST = [(case.name, kernel) for case in CASES.values() for kernel in case.honest]
DISHONEST = [(case.name, kernel) for case in CASES.values() for kernel in case.dishonest]


def judge(actual, exact, precision=Precision.FP32, inputs=(), accumulation=1, **options):
    """The verdict on one output whose reference in the task's precision is `exact`, rounded."""
    expected = exact.to(actual.dtype)
    return compare(
        [actual], [expected], [exact], inputs, precision, accumulation=accumulation, **options
    )


@pytest.mark.parametrize(("case", "kernel"), HONEST)
def test_honest_implementations_pass_with_a_margin_of_two(case, kernel):
    verdict = CASES[case].judge(CASES[case].honest[kernel])
    assert verdict.ok
    assert verdict.mismatch is None
    margin = 1.0 if "16" in case.split()[0] else 0.5  # none in 16 bits
    assert verdict.error_ratio <= margin * verdict.error_ratio_limit


@pytest.mark.parametrize(("case", "kernel"), DISHONEST)
def test_dishonest_implementations_are_refused(case, kernel):
    verdict = CASES[case].judge(CASES[case].dishonest[kernel])
    assert not verdict.ok
    assert verdict.mismatch.kind == "values"
    assert verdict.mismatch.wrong > 0
    assert verdict.mismatch.patterns


def test_count_shape_and_dtype_are_exact():
    value = randn(4, 4)
    assert compare([], [value], None, [], Precision.FP32).mismatch.kind == "count"
    assert compare([value, value], [value], None, [], Precision.FP32).mismatch.kind == "count"
    assert compare([value[:2]], [value], None, [], Precision.FP32).mismatch.kind == "shape"
    assert compare([value.double()], [value], None, [], Precision.FP32).mismatch.kind == "dtype"
    # Broadcasting must not save a row, nor a scalar a vector of one.
    assert compare([value[:1]], [value], None, [], Precision.FP32).mismatch.kind == "shape"
    scalar = torch.tensor(1.0)
    assert compare([scalar[None]], [scalar], None, [], Precision.FP32).mismatch.kind == "shape"


def test_the_second_output_is_judged_too():
    good, exact = randn(8, 8), randn(8, 8).double()
    verdict = compare([good, good * 0], [good, good], [exact, exact], [], Precision.FP32)
    assert not verdict.ok
    assert verdict.mismatch.output == 1
    assert verdict.error_ratio > verdict.error_ratio_limit


def test_empty_outputs_and_scalars():
    empty = torch.zeros(0, 5)
    assert compare([empty], [empty], [empty.double()], [], Precision.FP32).ok
    exact = torch.tensor(2.5, dtype=torch.float64)
    assert judge(torch.tensor(2.5), exact).ok
    assert not judge(torch.tensor(2.5001), exact).ok
    assert judge(torch.tensor(7), torch.tensor(7)).ok
    assert not judge(torch.tensor(True), torch.tensor(False)).ok


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nonfinite_values_must_stand_where_the_reference_has_them(value):
    exact = randn(40, 50).double()
    exact[3, 7] = value
    right = exact.float()
    assert judge(right, exact).ok
    for wrong_value in (0.0, math.nan, math.inf, -math.inf):
        if wrong_value == value or (math.isnan(wrong_value) and math.isnan(value)):
            continue
        wrong = right.clone()
        wrong[3, 7] = wrong_value
        assert not judge(wrong, exact).ok
    elsewhere = right.clone()
    elsewhere[9, 9] = value
    assert not judge(elsewhere, exact).ok


def test_a_reference_full_of_nan_excuses_nothing():
    exact = torch.full((64, 64), math.nan, dtype=torch.float64)
    assert not judge(randn(64, 64), exact).ok
    assert judge(exact.float(), exact).ok


def test_overflow_in_the_dtype_of_the_task():
    exact = torch.full((8, 8), 1e6, dtype=torch.float64)
    assert judge(torch.full((8, 8), math.inf, dtype=torch.float16), exact, Precision.FP16).ok
    assert not judge(torch.full((8, 8), 65504.0).half(), exact, Precision.FP16).ok


@pytest.mark.parametrize("along", ["row", "column"])
def test_a_wrong_row_or_column_is_found_however_small_its_values(along):
    rows = randn(128, 256).double() * torch.logspace(-9, 9, 128, dtype=torch.float64)[:, None]
    exact = rows if along == "row" else rows.t().contiguous()
    right = exact.float()
    assert judge(right, exact).ok
    for place in (0, 3, 40, 127):
        for factor in (1.01, 0):
            wrong = right.clone()
            wrong.select(0 if along == "row" else 1, place).mul_(factor)
            assert not judge(wrong, exact).ok


def test_rows_of_zeros_may_hold_noise_of_the_whole():
    exact = randn(128, 256).double()
    exact[7] = 0
    noisy = exact.float()
    noisy[7] = randn(256) * 1e-8
    assert judge(noisy, exact).ok
    noisy[7] = randn(256) * 1e-5
    assert not judge(noisy, exact).ok


def test_a_row_with_one_value_may_be_as_noisy_as_another():
    # What a difference near zero leaves, as in min(x + 0.5, 0): L was lucky in one row.
    exact, rows = torch.zeros(8192, 130).double(), torch.arange(0, 8192, 1024)
    exact[rows, rows % 130] = 4e-3 * rand(8).double()
    at = (1024, 1024 % 130)
    reference = exact + (exact != 0) * 5e-8 * randn(8192, 130, seed=1)
    reference[at] = exact[at]
    kernel = reference.clone()

    def verdict():
        pair = ([kernel.float()], [reference.float()])
        return compare(*pair, [exact], [], Precision.FP32, accumulation=256)

    kernel[at] += 1.2e-7
    assert verdict().ok
    kernel[at] += 1e-6
    assert not verdict().ok


def test_zeros_say_nothing_of_the_reference_error():
    zeros, exact = torch.zeros(64, 64).double(), randn(64, 64).double() / 3
    assert judge(zeros.float(), zeros).reference_errors == (None,)
    (known,) = judge(exact.float(), exact).reference_errors
    assert known is not None and 0 < known < 1e-7


@settings(max_examples=50)
@given(st.integers(0, 64 * 300 - 1), st.sampled_from([1e-3, -1e-2, 1.0, math.nan, math.inf]))
def test_no_single_element_may_be_wrong(position, by):
    exact = randn(64, 300).double()
    wrong = exact.float()
    wrong.view(-1)[position] += by
    verdict = judge(wrong, exact)
    assert not verdict.ok
    assert verdict.mismatch.wrong == 1
    assert verdict.mismatch.examples[0].index == (position // 300, position % 300)


def test_a_bad_reference_buys_no_slack():
    exact = randn(64, 64).double()
    bad = (exact + 1e-3 * randn(64, 64, seed=1)).float()
    verdict = compare([bad], [bad], [exact], [], Precision.FP32, accumulation=1)
    assert verdict.ok
    assert verdict.error_ratio_limit < 32
    worse = (exact + 4e-3 * randn(64, 64, seed=2)).float()
    assert not compare([worse], [bad], [exact], [], Precision.FP32, accumulation=1).ok


def test_without_an_exact_reference_the_task_precision_must_do():
    a, b = randn(48, 1024), randn(1024, 64, seed=1)
    expected = a @ b
    options = {"exact": None, "inputs": [a, b], "precision": Precision.FP32, "accumulation": 1024}
    assert compare([matmul_sequential(a, b)], [expected], **options).ok
    halves = (a.half().float() @ b.half().float(), a.bfloat16().float() @ b.bfloat16().float())
    for cheat in halves:
        assert not compare([cheat], [expected], **options).ok


def test_tf32_tasks_accept_tf32_and_refuse_bf16():
    a, b = randn(48, 1024), randn(1024, 64, seed=1)
    exact = a.double() @ b.double()
    in_tf32 = rounded(a, 10) @ rounded(b, 10)
    in_bf16 = a.bfloat16().float() @ b.bfloat16().float()
    truncated = [(t.view(torch.int32) & ~0x1FFF).view(torch.float32) for t in (a, b)]
    for expected in (in_tf32, a @ b):
        options = ([expected], [exact], [a, b], Precision.TF32)
        assert compare([a @ b], *options, accumulation=1024).ok
        assert compare([in_tf32], *options, accumulation=1024).ok
        assert compare([truncated[0] @ truncated[1]], *options, accumulation=1024).ok
        assert not compare([in_bf16], *options, accumulation=1024).ok


def test_complex_outputs_are_judged_by_their_parts():
    exact = torch.complex(randn(32, 32), randn(32, 32, seed=1)).to(torch.complex128)
    for tolerance in (None, (1e-4, 1e-4)):
        assert judge(exact.cfloat(), exact, tolerance=tolerance).ok
        assert not judge(exact.conj().resolve_conj().cfloat(), exact, tolerance=tolerance).ok


@pytest.mark.parametrize("at", [0, 1])
def test_a_wrong_form_is_found_before_any_value_is_looked_at(at):
    right = [randn(4, 4), randn(3)]
    unread = [torch.empty(t.shape, device="meta") for t in right]
    unread[at] = unread[at][:2]
    verdict = compare(unread, right, [t.double() for t in right], [], Precision.FP32)
    assert not verdict.ok
    assert (verdict.mismatch.kind, verdict.mismatch.output) == ("shape", at)


def test_integers_are_exact_and_either_reference_is_right():
    expected, exact = torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])
    for good in (expected, exact):
        assert compare([good], [expected], [exact], [], Precision.FP32).ok
    bad = torch.tensor([1, 2, 5])
    assert compare([bad], [expected], [exact], [], Precision.FP32).mismatch.wrong == 1


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_arg_max_may_differ_only_in_ties(keepdim, dim):
    values = torch.randint(0, 4, (6, 7, 8), generator=torch.Generator().manual_seed(0)).float()
    first = values.argmax(dim, keepdim=keepdim)
    last = values.shape[dim] - 1 - values.flip(dim).argmax(dim, keepdim=keepdim)
    assert not torch.equal(first, last)
    for other, good in ((last, True), (last * 0, False), (last + 100, False), (last - 100, False)):
        assert compare([other], [first], [first], [values], Precision.FP32).ok is good
    lowest = values.argmin(dim, keepdim=keepdim)
    assert not compare([lowest], [first], [first], [values], Precision.FP32).ok


def test_top_k_indices_may_differ_in_ties_but_not_repeat():
    values = torch.tensor([[3.0, 1.0, 3.0, 2.0]])
    expected = torch.tensor([[0, 2]])
    swapped, repeated = torch.tensor([[2, 0]]), torch.tensor([[0, 0]])
    assert compare([swapped], [expected], None, [values], Precision.FP32).ok
    assert not compare([repeated], [expected], None, [values], Precision.FP32).ok


def test_kernelbench_protocol_is_allclose():
    exact = torch.zeros(4, 4, dtype=torch.float64)
    off = torch.full((4, 4), 9e-5)
    assert judge(off, exact, tolerance=KERNELBENCH.tolerance(Precision.FP32)).ok
    assert not judge(off, exact).ok
    assert not judge(off * 2, exact, tolerance=KERNELBENCH.tolerance(Precision.FP32)).ok
    half = torch.full((4, 4), 9e-3, dtype=torch.float16)
    assert judge(half, exact, Precision.FP16, tolerance=KERNELBENCH.tolerance(Precision.FP16)).ok
    nan = torch.full((4, 4), math.nan, dtype=torch.float64)
    assert not judge(nan.float(), nan, tolerance=KERNELBENCH.tolerance(Precision.FP32)).ok


@pytest.mark.parametrize("chunk", [7, 64, 200, 5000])
@pytest.mark.parametrize("shape", [(130, 96), (5, 7, 300), (20000,), (3, 2, 2, 2)])
def test_chunks_change_nothing(monkeypatch, chunk, shape):
    exact = randn(*shape).double()
    right = exact.float()
    wrong = right.clone()
    wrong.view(-1)[-1] *= 1.01
    whole = judge(right, exact), judge(wrong, exact)
    monkeypatch.setattr("evaluator.judge.correctness.error_sums.chunk", lambda _: chunk)
    monkeypatch.setattr("evaluator.judge.correctness.mismatch.CHUNK", chunk)
    parts = judge(right, exact), judge(wrong, exact)
    assert [v.ok for v in parts] == [v.ok for v in whole] == [True, False]
    # Of rows that are longer than a chunk, no columns are looked at.
    if chunk >= 300:
        assert parts[1].error_ratio == pytest.approx(whole[1].error_ratio)
    assert parts[1].mismatch == whole[1].mismatch


def test_a_tasks_own_thresholds_take_the_rules_place():
    right = rand(8, 64)
    thresholds = {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1}

    def judged(actual):
        return compare([actual], [right], [right], (), Precision.FP32, thresholds=thresholds)

    exact, rough, off = judged(right), judged(right * 1.04), judged(right * 1.06)
    assert (exact.ok, rough.ok, off.ok) == (True, True, False)
    assert exact.error_share == 0 and rough.error_share == pytest.approx(0.8, rel=1e-3)
    assert not judged(right * math.nan).ok and off.mismatch.kind == "values"


def test_fp64_is_not_fp32():
    right = rand(8, 64).double()
    for actual, good in ((right * (1 + 2**-42), True), (right.float().double() * 1.00001, False)):
        assert compare([actual], [right], [right], (), Precision.FP32).ok is good


def test_accumulation_is_guessed_from_shapes_when_not_told():
    case = Case("", [rand(16, 8192)], lambda x: x.sum(1), 1)
    expected = case.reference(*case.inputs)
    exact = case.reference(case.inputs[0].double())
    assert compare(
        [sequential(case.inputs[0])], [expected], [exact], case.inputs, Precision.FP32
    ).ok


@pytest.mark.gpu
def test_gpu_gives_the_same_verdicts():
    for name in ("matmul k=1024", "softmax n=1000", "gelu"):
        case = CASES[name]
        exact = case.reference(*(t.double() for t in case.inputs))
        expected = case.reference(*case.inputs)
        for kernels, good in ((case.honest, True), (case.dishonest, False)):
            for kernel in kernels.values():
                actual = kernel(*case.inputs)
                verdict = compare(
                    [actual.cuda()],
                    [expected.cuda()],
                    [exact],
                    [t.cuda() for t in case.inputs],
                    Precision.FP32,
                    accumulation=case.accumulation,
                )
                assert verdict.ok is good
