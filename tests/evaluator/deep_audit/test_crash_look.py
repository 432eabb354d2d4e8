"""A crash behind a real judge is looked into once, and the verdict stays what it was."""

from __future__ import annotations

import pytest

from evaluator.audit_record import Tool
from evaluator.deep_audit import crash_look
from evaluator.deep_audit.address_sanitizer import AddressSanitizer
from evaluator.deep_audit.occasion import crashed
from evaluator.evaluation import (
    BuildReport,
    Evaluation,
    Status,
)
from evaluator.settings import Settings
from tests.evaluator.deep_audit.programs import OWN, program
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, evaluation_request
from tools.diagnosis.diagnose import explain

_SIGNATURE = "torch::Tensor scale_and_bias("
PAST_THE_END = program(
    "volatile long* own = (volatile long*)malloc(4104);\n"
    "  for (int i = 0; i <= 513; ++i) own[i] = -1;\n"
    "  free((void*)own);"
)
NULL_POINTER = program("float* none = rows > 1 ? nullptr : to;\n  none[3] = 1.0f;")
STACK_OVERFLOW = program("to[0] += deep(rows);").replace(
    _SIGNATURE,
    "static float deep(long n) {\n  volatile float big[1024];\n  big[n % 1024] = n;\n"
    f"  return n < 0 ? 0 : deep(n + 1) + big[3];\n}}\n\n{_SIGNATURE}",
    1,
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "reason", "kind", "function", "line", "text"),
    [
        (PAST_THE_END, "abort", "heap-buffer-overflow", "scale_and_bias", "own[i] = -1",
         "WRITE of size 8, 0 bytes after 4104-byte region, allocated at main.cpp:"),
        (NULL_POINTER, "segfault", "SEGV", "scale_and_bias", "none[3] = 1.0f",
         "WRITE through a null pointer"),
        (STACK_OVERFLOW, "segfault", "stack-overflow", "deep", "deep", ""),
    ],
)  # fmt: skip
def test_a_crash_is_told_with_file_line_and_function(
    evaluate, source, reason, kind, function, line, text
):
    evaluation = evaluate(source, audit="auto")
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, reason)
    assert evaluation.audit.occasion == "crash" and evaluation.provenance is None
    assert evaluation.seconds.audit == evaluation.audit.seconds > 0
    run = next(each for each in evaluation.audit.sanitizers if each.tool is Tool.ADDRESS)
    (finding,) = run.findings
    assert finding.kind == kind and finding.text.startswith(text)
    assert finding.file == "main.cpp" and finding.frames[0].startswith(f"{function} main.cpp:")
    assert line in finding.lines[finding.place]
    words = explain(evaluation, source)
    number = next(n for n, row in enumerate(source.splitlines(), 1) if line in row)
    assert f"in {function}:" in words
    if kind != "stack-overflow":
        assert f"> {number:4d} |" in words and f"At line {number}," in words
    assert len(words.splitlines()) <= 13


@pytest.mark.thorough
def test_the_tensor_that_is_as_large_is_named(evaluate):
    outside = program("for (long i = 0; i < 1L << 24; ++i) to[rows * columns + i] = 0.0f;")
    evaluation = evaluate(outside, audit="auto")
    words = explain(evaluation, outside)
    assert "0 bytes after 524288-byte region; as large as input 0 (float32 [256, 512])" in words
    for seed in evaluation.seeds:
        assert str(seed) not in words


def test_where_it_is_turned_off_or_nothing_was_compiled_there_is_no_look(evaluate):
    assert evaluate(NULL_POINTER, audit="never").audit is None
    in_python = HONEST.replace(
        "return torch.relu", "import os\n        os.abort()\n        return x"
    )
    evaluation = evaluate(in_python, audit="auto")
    assert evaluation.reason == "abort" and evaluation.audit is None


def crash(reason: str, message: str = "", **fields: object) -> Evaluation:
    return Evaluation(
        status=Status.RUNTIME_ERROR, reason=reason, message=message, build=BuildReport(ok=True)
    ).model_copy(update=fields)


@pytest.mark.parametrize(
    ("evaluation", "device", "wanted"),
    [
        (crash("segfault"), "cpu", True),
        (crash("abort"), "cpu", True),
        (crash("sigfpe"), "cpu", True),
        (crash("killed"), "cpu", False),
        (crash("forward_raised", "illegal memory access"), "cpu", False),
        (crash("segfault", build=None), "cpu", False),
        (crash("forward_raised", "CUDA error: an illegal memory access"), "cuda:0", True),
        (crash("forward_raised", "CUDA error: misaligned address"), "cuda:0", True),
        (crash("forward_raised", "CUDA error: device-side assert triggered"), "cuda:0", True),
        (crash("forward_raised", "CUDA error: invalid argument"), "cuda:0", False),
        (crash("segfault"), "cuda:0", False),
    ],
)
def test_which_endings_are_crashes(evaluation, device, wanted):
    assert crashed(evaluation, Settings(device=device)) is wanted
    assert not crashed(evaluation, Settings(device=device, audit="never"))


@pytest.mark.slow
def test_a_look_that_takes_too_long_is_ended(auditor, monkeypatch):
    asked = evaluation_request("import time\ntime.sleep(60)\n" + OWN)
    judge = auditor._judge
    judge.context_for(asked)
    # An ordinary zygote: what counts here is the clock.
    monkeypatch.setattr(AddressSanitizer, "_started", lambda _: judge._zygote)
    monkeypatch.setattr(crash_look, "LIMIT_S", 0.5)
    evaluation = auditor.audited(asked, crash("segfault"))
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "segfault")
    assert {run.outcome for run in evaluation.audit.sanitizers} == {"inconclusive"}
    assert "not done in the time that there is" in evaluation.audit.sanitizers[0].note
    assert evaluation.seconds.audit < 60
    assert evaluation.is_lasting


def test_a_fault_of_ours_costs_the_finding_and_not_the_verdict(auditor, lost_device):
    evaluation = auditor.audited(evaluation_request(OWN), crash("abort"))
    assert evaluation.reason == "abort" and evaluation.audit.sanitizers == ()
    assert evaluation.notes == ("the crash was not looked into: the device is gone",)


@pytest.mark.slow
def test_a_crash_at_hidden_sizes_is_found_too(evaluate):
    source = program("float* none = rows == 3 ? nullptr : to;\n  none[0] += 0.0f;")
    hidden = (SCALE_AND_BIAS.replace("256, 512", "3, 37"),)
    evaluation = evaluate(source, hidden=hidden, audit="auto")
    assert evaluation.reason == "segfault" and "inputs of shape (3, 37)" in evaluation.message
    words = explain(evaluation, source)
    assert "through a null pointer" in words and "none[0] += 0.0f;" in words
