"""The audit behind a real judge: what is right by luck is refused, all else is only told."""

from __future__ import annotations

import itertools

import pytest

from evaluator.audit_record import Finding, Provenance, SanitizerRun, Tool
from evaluator.deep_audit.deep_audit import DeepAuditor
from evaluator.deep_audit.occasion import occasion_for
from evaluator.errors import AuditEndedError
from evaluator.evaluation import Evaluation, Status
from evaluator.settings import Settings
from tests.evaluator.deep_audit.programs import (
    INDEX_TOO_LARGE,
    OWN,
    OWN_PLAIN_C,
    READS_TOO_FAR,
    SHIFTS_TOO_FAR,
    SLOW_WHEN_WATCHED,
    program,
)
from tests.evaluator.made_evaluations import correct, unbuilt
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS, evaluation_request, forward

IN_PYTORCH = "return torch.relu(x * self.scale + self.bias) * 2.0"


def run_of(evaluation: Evaluation, tool: Tool) -> SanitizerRun:
    assert evaluation.audit is not None
    return next(run for run in evaluation.audit.sanitizers if run.tool is tool)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "source",
    [OWN, pytest.param(OWN_PLAIN_C, marks=pytest.mark.slow)],
    ids=["module", "plain C"],
)
def test_a_clean_kernel_of_its_own_stays_correct(evaluate, source):
    evaluation = evaluate(source, audit="always")
    assert evaluation.status is Status.CORRECT, evaluation.detail
    assert evaluation.timing is not None
    for tool in (Tool.ADDRESS, Tool.UNDEFINED):
        run = run_of(evaluation, tool)
        assert (run.outcome, run.calls) == ("clean", 3), run.note
    assert evaluation.provenance is Provenance.CUSTOM
    assert evaluation.audit.shares.own_names == ("scale_and_bias",)
    assert evaluation.audit.occasion == "asked"
    assert evaluation.seconds.audit == evaluation.audit.seconds > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "tool", "kind", "text"),
    [
        (READS_TOO_FAR, Tool.ADDRESS, "heap-buffer-overflow", "READ of size 4"),
        (INDEX_TOO_LARGE, Tool.UNDEFINED, "index-out-of-bounds", "index 4 out of bounds"),
    ],
)
def test_what_is_right_by_luck_is_refused(evaluate, source, tool, kind, text):
    evaluation = evaluate(source, audit="always")
    assert (evaluation.status, evaluation.reason) == (Status.RUNTIME_ERROR, "memory_error")
    assert evaluation.timing is None
    (finding,) = [each for each in run_of(evaluation, tool).findings if each.refuses]
    assert finding.kind == kind and text in finding.text
    # The line in the text that the candidate handed over, after the include in front of it.
    lines = source.split('r"""', 1)[1].splitlines()
    assert "volatile" in lines[finding.line - 2]
    assert finding.place in evaluation.message and "0x" not in evaluation.detail


@pytest.mark.slow
def test_other_undefined_behaviour_is_told_only(evaluate):
    evaluation = evaluate(SHIFTS_TOO_FAR, audit="always")
    assert evaluation.status is Status.CORRECT
    (finding,) = run_of(evaluation, Tool.UNDEFINED).findings
    assert "shift exponent 33" in finding.text and not finding.refuses
    assert run_of(evaluation, Tool.ADDRESS).outcome == "clean"


@pytest.mark.slow
def test_who_leaves_when_watched_is_not_called_clean(evaluate):
    watched = "import os\nif 'libasan' in open('/proc/self/maps').read():\n    os._exit(0)"
    evaluation = evaluate(program(head=watched), audit="always")
    assert evaluation.status is Status.CORRECT
    run = run_of(evaluation, Tool.ADDRESS)
    assert run.outcome == "inconclusive" and "exited" in run.note


@pytest.mark.slow
def test_who_takes_all_memory_when_watched_does_not_get_it(evaluate):
    greedy = (
        "held = []\nif 'libasan' in open('/proc/self/maps').read():\n    import torch\n"
        "    held = [torch.zeros(2**24) for _ in range(128)]"
    )
    evaluation = evaluate(program(head=greedy), audit="always", memory_limit_bytes=4 * 2**30)
    assert evaluation.status is Status.CORRECT
    run = run_of(evaluation, Tool.ADDRESS)
    assert run.outcome in ("inconclusive", "findings"), run
    assert not any(finding.refuses for finding in run.findings)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "source",
    [
        # A kernel that does not build, and the way round it.
        "from torch.utils.cpp_extension import load_inline\n"
        "try:\n    load_inline('broken', 'int f() { return nowhere; }', functions=['f'])\n"
        "except RuntimeError:\n    pass\n" + HONEST,
        # A kernel that is there to be seen.
        pytest.param(program(forward=IN_PYTORCH), marks=pytest.mark.slow),
        # The reference under another name.
        SCALE_AND_BIAS.split("ROWS,")[0] + "class ModelNew(Model):\n    pass\n",
    ],
)
def test_what_stands_in_for_a_kernel_is_a_fallback(evaluate, source):
    evaluation = evaluate(source, audit="always")
    assert evaluation.status is Status.CORRECT, evaluation.detail
    assert evaluation.provenance is Provenance.FALLBACK


@pytest.mark.thorough
def test_custom_kernels_can_be_required(evaluate):
    own = evaluate(OWN, require="custom")
    assert (own.status, own.provenance) == (Status.CORRECT, Provenance.CUSTOM), own.message
    assert own.audit.occasion == "required" and own.audit.sanitizers == ()
    library = evaluate(HONEST, require="custom", audit="always")
    assert (library.status, library.reason) == (Status.INTEGRITY, "not_custom")
    assert library.provenance is Provenance.LIBRARY and library.timing is None
    assert "aten::mul" in library.audit.shares.library_names
    assert run_of(library, Tool.ADDRESS).outcome == "not_run"


BUFFER = forward("""y = torch.relu(x * self.scale + self.bias) * 2.0
if not hasattr(self, "result"):
    self.result = torch.empty_like(y)
return self.result.copy_(y)""")


@pytest.mark.thorough
def test_a_result_that_the_next_call_overwrites_is_refused_on_demand(evaluate):
    told = evaluate(BUFFER, audit="always")
    assert told.status is Status.CORRECT, told.message
    assert told.audit.properties == ("the next call overwrites its result",)
    refused = evaluate(BUFFER, require="kept_results")
    assert (refused.status, refused.reason) == (Status.INTEGRITY, "result_overwritten")
    assert evaluate(HONEST, require="kept_results").status is Status.CORRECT


@pytest.mark.thorough
def test_a_turn_ends_the_sanitizer_in_hand(auditor: DeepAuditor) -> None:
    asked = evaluation_request(program(head=SLOW_WHEN_WATCHED), audit="always")
    looks = itertools.count()
    auditor._address._ended = lambda: next(looks) > 1
    auditor._ended = lambda: True
    with pytest.raises(AuditEndedError):
        auditor.audited(asked, judged(2.0, 10.0, 5.0))
    assert [begun.runs for begun in auditor._begun.values()] == [[]], "it was cut off"


@pytest.mark.thorough
def test_sanitizers_have_one_time_for_all_cases(auditor: DeepAuditor) -> None:
    request, timed = evaluation_request(OWN, audit="always"), judged(2.0, 10.0, 5.0)
    first = auditor.audited(request, timed).audit
    assert first.life and first.shares is not None
    second = auditor.audited(request, timed, first).audit
    assert [run.outcome for run in second.sanitizers] == ["clean", "clean"]
    assert second.life == () and second.shares is None
    runs = [run.model_copy(update={"seconds": 20.1}) for run in first.sanitizers]
    third = auditor.audited(request, timed, first.model_copy(update={"sanitizers": tuple(runs)}))
    said = "no sanitizers: the 40 s for all cases are used up"
    assert (third.status, third.audit, third.notes) == (Status.CORRECT, None, (said,))


class Clean:
    """A sanitizer that finds nothing."""

    def __init__(self, found: tuple[Finding, ...] = ()) -> None:
        self._found = found

    def run(self, *_: object, **__: object) -> list[SanitizerRun]:
        outcome = "findings" if self._found else "clean"
        return [SanitizerRun(tool=Tool.ADDRESS, outcome=outcome, findings=self._found)]


@pytest.mark.parametrize(
    ("found", "again"),
    [
        pytest.param((), False, marks=pytest.mark.slow),
        pytest.param((Finding(kind="shift", text="told only"),), True, marks=pytest.mark.slow),
    ],
)
def test_what_is_slower_than_an_audited_one_is_not_audited_again(
    auditor, monkeypatch, found, again
):
    monkeypatch.setattr(auditor, "_address", Clean(found))
    request = evaluation_request()
    first = auditor.audited(request, judged(20.0, 50.0, None))
    slower = auditor.audited(request, judged(19.0, 60.0, None))
    faster = auditor.audited(request, judged(21.0, 40.0, None))
    assert first.audit is not None and faster.audit is not None
    assert (slower.audit is not None) is again
    assert any("a faster kernel for this problem was" in n for n in slower.notes) is not again


def judged(speedup: float, latency_us: float, bound_us: float | None) -> Evaluation:
    return correct(speedup, latency_us, low=speedup, high=speedup, bound_us=bound_us)


@pytest.mark.parametrize(
    ("evaluation", "settings", "occasion"),
    [
        (judged(9.9, 10.0, 5.0), {}, None),
        (judged(10.1, 10.0, 5.0), {}, "speedup"),
        (judged(2.0, 10.0, 10.5), {}, "under_bound"),
        (judged(2.0, 10.0, None), {}, None),
        (judged(90.0, 10.0, 50.0), {"audit": "never"}, None),
        (judged(1.0, 10.0, 5.0), {"audit": "always"}, "asked"),
        (unbuilt(), {"audit": "always"}, None),
        (judged(1.0, 10.0, 5.0), {"require": "custom"}, "required"),
        (judged(90.0, 10.0, 5.0), {"require": "custom"}, "speedup"),
    ],
)
def test_when_there_is_occasion(evaluation, settings, occasion):
    assert occasion_for(evaluation, Settings.model_validate(settings)) == occasion


@pytest.mark.parametrize(
    ("require", "status", "reason"),
    [("any", Status.CORRECT, ""), ("custom", Status.INTEGRITY, "provenance_unknown")],
)
def test_a_fault_of_ours_costs_the_label_and_not_the_verdict(
    auditor, lost_device, require, status, reason
):
    request = evaluation_request(HONEST, audit="always", require=require)
    evaluation = auditor.audited(request, judged(2.0, 10.0, 5.0))
    assert (evaluation.status, evaluation.reason) == (status, reason)
    assert evaluation.provenance is None
    assert evaluation.notes == ("the audit was not finished: the device is gone",)
