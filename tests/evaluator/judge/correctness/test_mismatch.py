import math
import re

import pytest
import torch

from evaluator.evaluation import Correctness, Mismatch
from evaluator.judge.correctness.comparison import compare
from evaluator.judge.correctness.mismatch import add_race, describe
from evaluator.mismatch_words import mismatch_words
from evaluator.settings import Precision
from tests.evaluator.judge.correctness.calibration import rand, randn, rounded

POISON = 0x7FF3A55A
"""As a little-endian float32: a NaN with a payload of its own."""
SHAPE = (48, 64)


def right():
    return randn(*SHAPE)


def with_poison(where):
    out = right()
    out.view(torch.int32)[where] = POISON
    return out


def changed(where, value):
    out = right()
    out[where] = value(out[where]) if callable(value) else value
    return out


def flat(slicing, value):
    out = right().reshape(-1)
    out[slicing] = value(out[slicing]) if callable(value) else value
    return out.reshape(SHAPE)


def garbage(t):
    return t + randn(*t.shape, seed=9) + 3


everywhere = (slice(None), slice(None))
INPUTS = [rand(*SHAPE, seed=5), randn(*SHAPE, seed=6)]

PLANTED = {
    "nan in one place": (lambda: changed((3, 4), math.nan), "nan"),
    "infinite in one place": (lambda: changed((3, 4), math.inf), "infinite"),
    "nothing written": (lambda: with_poison(everywhere), "unwritten"),
    "last rows not written": (lambda: with_poison((slice(40, None), slice(None))), "unwritten"),
    "last rows not written, where": (
        lambda: with_poison((slice(40, None), slice(None))),
        "boundary",
    ),
    "all zeros": (lambda: right() * 0, "zeros"),
    "last rows zero": (lambda: changed((slice(40, None),), 0.0), "zeros"),
    "last rows zero, where": (lambda: changed((slice(40, None),), 0.0), "boundary"),
    "all one value": (lambda: torch.full(SHAPE, 0.25), "constant"),
    "scale missing": (lambda: right() * 8, "factor"),
    "sign": (lambda: -right(), "factor"),
    "scale slightly off": (lambda: right() * 1.002, "factor"),
    "bias missing": (lambda: right() - 0.5, "offset"),
    "transposed": (lambda: right().T.contiguous().reshape(SHAPE), "transposed"),
    "one element on": (lambda: flat(slice(1, None), right().reshape(-1)[:-1]), "shifted"),
    "one row back": (lambda: right().roll(-1, 0), "shifted"),
    "rows not divided": (lambda: right() * (1 + rand(48, 1, seed=8)), "row_factor"),
    "last columns garbage": (lambda: changed((slice(None), slice(60, None)), garbage), "boundary"),
    "first column garbage": (lambda: changed((slice(None), slice(0, 1)), garbage), "boundary"),
    "tail of the flat array": (lambda: flat(slice(2900, None), garbage), "boundary"),
    "some rows": (lambda: changed(([3, 17, 18, 30],), garbage), "rows"),
    "some columns": (lambda: changed((slice(None), [5, 9, 33]), garbage), "columns"),
    "every 7th element": (lambda: flat(slice(2, None, 7), garbage), "every_kth"),
    "every 3rd element": (lambda: flat(slice(0, None, 3), garbage), "every_kth"),
    "second input returned": (lambda: INPUTS[1].clone(), "input_copy"),
    "bf16 arithmetic": (lambda: right().bfloat16().float(), "precision"),
    "tf32 arithmetic": (lambda: rounded(right(), 10), "precision"),
    "noise of bf16 size": (lambda: right() * (1 + 2e-3 * randn(*SHAPE, seed=3)), "precision"),
    "a few wild elements": (lambda: flat([100, 777, 1500, 2901], garbage), "scattered"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_named(bug):
    make, code = PLANTED[bug]
    exact = right().double()
    verdict = compare(
        [make()], [right()], [exact], INPUTS, Precision.FP32, accumulation=1, poison=POISON
    )
    assert not verdict.ok
    assert code in verdict.mismatch.patterns[:2]


def test_rim_of_an_image():
    exact = randn(2, 3, 32, 32).double()
    wrong = exact.float()
    inner = wrong[:, :, 1:-1, 1:-1].clone()
    wrong = wrong + 1
    wrong[:, :, 1:-1, 1:-1] = inner
    verdict = compare([wrong], [exact.float()], [exact], [], Precision.FP32, accumulation=1)
    assert verdict.mismatch.patterns[:2] == ("boundary", "offset")
    assert verdict.mismatch.details["rim"] == 1


def test_channels_last_is_a_transposition():
    exact = randn(2, 5, 6, 7).double()
    wrong = exact.float().permute(0, 2, 3, 1).contiguous().reshape(exact.shape)
    verdict = compare([wrong], [exact.float()], [exact], [], Precision.FP32, accumulation=1)
    assert verdict.mismatch.patterns[0] == "transposed"
    assert verdict.mismatch.details["transposed"] == "channels_last"


def test_details_hold_what_a_pattern_rests_on():
    def details(actual):
        return describe(0, actual, right().double(), inputs=INPUTS, poison=POISON).details

    assert details(right() * 8)["factor"] == pytest.approx(8)
    assert details(right() - 0.5)["offset"] == pytest.approx(-0.5, rel=1e-3)
    assert details(flat(slice(2, None, 7), garbage))["period"] == 7
    assert details(flat(slice(2, None, 7), garbage))["residue"] == 2
    assert details(flat(slice(2900, None), garbage))["first_wrong_flat"] == 2900
    assert details(changed((slice(40, None),), 0.0))["from_index"] == 40
    assert details(INPUTS[1].clone())["input"] == 1


def test_a_column_of_small_values_is_named():
    exact = randn(128, 64).double()
    exact[:, 3] *= 1e-9
    close = (exact * (1 + 1e-7)).float()
    close[:, 3] = 0
    found = compare([close], [exact.float()], [exact], [], Precision.FP32).mismatch
    assert found is not None
    assert found.wrong == 128
    assert found.patterns[:2] == ("columns", "zeros")
    assert found.details["first_column"] == 3


@pytest.mark.parametrize(
    ("wrong_at", "words"),
    [
        ((slice(None), 3), r"error of element \[\d+, 3\] is \S+ times .* in that column; 64 times"),
        ((40, slice(None)), r"error of element \[40, \d+\] is \S+ times .* in that row; 64 times"),
        (..., "error as a whole is .* times that of PyTorch's own result; 32 times"),
    ],
    ids=["a column", "a row", "all of it"],
)
def test_the_words_name_what_is_too_far_off_by_its_own_rule(wrong_at, words):
    exact = randn(128, 64).double()
    if wrong_at is not ...:
        exact[wrong_at] *= 1e-9
    wrong = exact.float()
    wrong[wrong_at] *= 1.01
    verdict = compare([wrong], [exact.float()], [exact], [], Precision.FP32)
    correctness = Correctness(
        calls_judged=1,
        calls_made=1,
        error_ratio=verdict.error_ratio,
        error_ratio_limit=verdict.error_ratio_limit,
        error_part=verdict.error_part,
        mismatch=verdict.mismatch,
    )
    assert re.search(words, " ".join(mismatch_words(correctness)))


def test_counts_errors_and_examples():
    exact = right().double()
    wrong = right()
    for row in range(12):
        wrong[row, row] += row + 1
    mismatch = compare([wrong], [right()], [exact], [], Precision.FP32, accumulation=1).mismatch
    assert (mismatch.wrong, mismatch.total) == (12, 48 * 64)
    assert mismatch.max_abs_error == pytest.approx(12, rel=1e-5)
    assert (mismatch.expected_shape, mismatch.expected_dtype) == (SHAPE, "float32")
    shown = [example.index for example in mismatch.examples]
    assert shown == [(i, i) for i in (0, 1, 2, 3, 11, 10, 9, 8)]
    assert mismatch.examples[4].actual - mismatch.examples[4].expected == pytest.approx(12)


def test_sampling_a_large_output_is_even(monkeypatch):
    monkeypatch.setattr("evaluator.judge.correctness.mismatch.SAMPLE", 100)
    monkeypatch.setattr("evaluator.judge.correctness.mismatch.CHUNK", 1000)
    exact = randn(30000).double()
    mismatch = describe(0, exact.float() * 3, exact)
    assert mismatch.wrong == 30000
    assert mismatch.patterns[0] == "factor"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8])
def test_poison_is_known_in_every_dtype(dtype):
    expected = torch.arange(64).to(dtype)
    slot = torch.full((128,), POISON, dtype=torch.int32).view(torch.uint8)
    unwritten = slot[: 64 * expected.element_size()].view(dtype)
    mismatch = describe(0, unwritten, expected, poison=POISON)
    assert mismatch.patterns[0] == "unwritten"
    assert mismatch.details["unwritten_share"] == 1.0


def test_wrong_integers_are_described():
    expected = torch.arange(100)
    mismatch = compare([expected + 1], [expected], None, [], Precision.FP32).mismatch
    assert mismatch.patterns[0] == "offset"
    assert mismatch.details["offset"] == 1
    flags = expected > 50
    assert compare([~flags], [flags], None, [], Precision.FP32).mismatch.wrong == 100


def test_race_comes_first():
    mismatch = Mismatch(output=0, kind="values", patterns=("scattered",))
    assert add_race(mismatch).patterns == ("race",)
    assert add_race(mismatch.model_copy(update={"patterns": ("nan", "rows")})).patterns == (
        "race",
        "nan",
        "rows",
    )


def test_a_mismatch_with_nan_reads_back_from_json():
    exact = right().double()
    nan = changed((3, 4), math.nan)
    infinite = changed((3, 4), math.inf)
    for wrong in (nan, infinite):
        mismatch = compare([wrong], [right()], [exact], [], Precision.FP32).mismatch
        again = Mismatch.model_validate_json(mismatch.model_dump_json())
        assert again.examples[0].actual == pytest.approx(mismatch.examples[0].actual, nan_ok=True)
        assert math.isfinite(again.max_abs_error)
