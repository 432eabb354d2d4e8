"""`otlp`: OpenTelemetry spans of a run, a trace a problem, sent over OTLP/HTTP.

A problem's span holds its turns' spans, and a turn's those of its stages. A record has the end of
the turn and the duration of each stage. So the stages stand one after another before that end; the
wait for a free device, which is not recorded, is no part of any. Ids follow from what is recorded:
the same turn has the same span whenever it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evaluator.evaluation import Status
from experiments.export.recorded_run import RecordedRun, RecordedTurn, digest, outcome_of
from problems.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

STAGES = ("model", "build", "judge", "profile")
PREFIX = "kernel_refinery."
"""Before the name of a column of `load_runs`, as a span's attribute."""
_BATCH = 512


class SpanSink:
    """Sends turns to a collector as they come, and a problem's span at the end."""

    def __init__(self, endpoint: str | None) -> None:
        """`endpoint`: a URL, to which `/v1/traces` is added where it has no path; None: as
        OTEL_EXPORTER_OTLP_ENDPOINT says, or port 4318 here. Raises `UsageError`."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        # What it logs about a failed request, the UsageError below says.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._endpoint = _with_path(endpoint) if endpoint else None
        self._exporter = OTLPSpanExporter(endpoint=self._endpoint)
        self._sent: set[tuple[str, str, int, int]] = set()
        self._runs: dict[str, RecordedRun] = {}
        self.spans = 0

    def update(self, run: RecordedRun) -> None:
        self._runs[run.id] = run
        new = {(run.id, *_place(turn)): turn for turn in run.turns}
        for key in self._sent & new.keys():
            del new[key]
        self._send([span for turn in new.values() for span in turn_spans(run, turn)])
        self._sent |= new.keys()

    def close(self) -> None:
        runs, self._runs = self._runs, {}
        self._send([span for run in runs.values() for span in problem_spans(run)])
        self._exporter.shutdown()

    def _send(self, spans: Sequence[ReadableSpan]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        for start in range(0, len(spans), _BATCH):
            batch = spans[start : start + _BATCH]
            if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
                self._runs.clear()
                raise UsageError(
                    f"{self._endpoint or 'the default endpoint'} took no spans; start an OTLP/HTTP"
                    " collector there, or name another --endpoint"
                )
            self.spans += len(batch)


def turn_spans(run: RecordedRun, turn: RecordedTurn) -> Iterator[ReadableSpan]:
    record, place = turn.record, _place(turn)
    context = _context(run, *place)
    verdict = record.evaluation
    correct = verdict.status is Status.CORRECT
    yield _span(
        run,
        f"turn {record.sample}.{record.turn}",
        context,
        _context(run, record.problem),
        turn.began,
        turn.ended,
        _attributes(turn.row),
        error="" if correct else f"{verdict.status}: {verdict.reason}",
    )
    start = turn.began
    for stage in STAGES:
        seconds = turn.row[f"seconds_{stage}"]
        end = min(start + timedelta(seconds=seconds), turn.ended)  # or 1 us late, by rounding
        if seconds > 0:
            yield _span(
                run,
                stage,
                _context(run, *place, stage),
                context,
                start,
                end,
                _model_attributes(turn) if stage == "model" else {},
            )
        start = end


def problem_spans(run: RecordedRun) -> Iterator[ReadableSpan]:
    """A span for each problem, from its first turn to its last, with its best kernel's columns."""
    problems: dict[str, list[RecordedTurn]] = {}
    for turn in run.turns:
        problems.setdefault(turn.record.problem, []).append(turn)
    for problem, turns in problems.items():
        outcome = outcome_of(turns)
        yield _span(
            run,
            problem,
            _context(run, problem),
            None,
            min(turn.began for turn in turns),
            max(turn.ended for turn in turns),
            {
                **_attributes(outcome.row),
                f"{PREFIX}turns": len(turns),
                f"{PREFIX}reward": outcome.reward,
            },
        )


def _span(
    run: RecordedRun,
    name: str,
    context: SpanContext,
    parent: SpanContext | None,
    start: datetime,
    end: datetime,
    attributes: dict[str, Any],
    error: str = "",
) -> ReadableSpan:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Status as SpanStatus
    from opentelemetry.trace import StatusCode

    return ReadableSpan(
        name,
        context,
        parent,
        Resource.create({"service.name": "kernel-refinery", f"{PREFIX}run": run.name}),
        attributes,
        status=SpanStatus(StatusCode.ERROR, error) if error else SpanStatus(StatusCode.UNSET),
        start_time=_nanoseconds(start),
        end_time=_nanoseconds(end),
    )


def _context(run: RecordedRun, problem: str, *inside: object) -> SpanContext:
    """Of a problem; with `inside`, of a turn (sample, turn) or of its stage."""
    from opentelemetry.trace import SpanContext, TraceFlags

    trace = digest(run.id, problem, "trace") + digest(problem, run.id)
    span = digest(run.id, problem, *inside)
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=flags)


def _place(turn: RecordedTurn) -> tuple[str, int, int]:
    return turn.record.problem, turn.record.sample, turn.record.turn


def _attributes(row: dict[str, Any]) -> dict[str, Any]:
    known = {k: v for k, v in row.items() if k != "path" and v != "" and v == v}
    return {PREFIX + name: value for name, value in known.items()}


def _model_attributes(turn: RecordedTurn) -> dict[str, Any]:
    """By OpenTelemetry's semantic conventions for generative AI."""
    record = turn.record
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": record.model.partition("/")[0],
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": record.model_answered,
        "gen_ai.response.finish_reasons": (record.finish_reason,),
        "gen_ai.usage.input_tokens": record.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": record.usage.completion_tokens,
        "gen_ai.request.temperature": record.temperature,
    }
    return {name: value for name, value in found.items() if value is not None}


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000


def _with_path(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--endpoint {endpoint}: give a URL such as http://localhost:4318")
    return endpoint if parts.path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"
