from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from experiments.export.recorded_run import recorded_runs
from experiments.export.spans import problem_spans, turn_spans
from experiments.runs import load_runs
from tests.command import command, refused
from tests.experiments.export.exports import BY_HAND, REFINED, SAMPLED


def spans_of(run) -> list[ReadableSpan]:
    [recorded] = recorded_runs([run])
    turns = [span for turn in recorded.turns for span in turn_spans(recorded, turn)]
    return [*turns, *problem_spans(recorded)]


def test_a_trace_a_problem_with_turns_and_stages():
    spans, table = spans_of(BY_HAND), load_runs(BY_HAND)
    assert {span.resource.attributes["service.name"] for span in spans} == {"kernel-refinery"}
    roots = [span for span in spans if span.parent is None]
    assert sorted(span.name for span in roots) == sorted(set(table["problem"]))
    assert len({span.context.trace_id for span in spans}) == len(roots) == 4
    by_id = {span.context.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    assert {span.context.span_id for span in spans_of(BY_HAND)} == set(by_id)
    turns = [span for span in spans if span.name.startswith("turn ")]
    assert len(turns) == len(table)
    assert {by_id[span.parent.span_id].name for span in turns} == set(table["problem"])
    for stage in spans:
        if stage not in roots and stage not in turns:
            turn = by_id[stage.parent.span_id]
            assert turn.context.trace_id == stage.context.trace_id
            assert turn.start_time <= stage.start_time <= stage.end_time <= turn.end_time


def test_durations_and_attributes_are_those_of_the_record():
    spans, row = spans_of(BY_HAND), load_runs(BY_HAND).iloc[0]
    turn = next(span for span in spans if span.name == "turn 0.0")
    assert turn.attributes["kernel_refinery.problem"] == row["problem"]
    assert turn.attributes["kernel_refinery.speedup_low"] == row["speedup_low"]
    assert "kernel_refinery.path" not in turn.attributes
    stages = {
        span.name: span
        for span in spans
        if span.parent and span.parent.span_id == turn.context.span_id
    }
    seconds = {name: (each.end_time - each.start_time) / 1e9 for name, each in stages.items()}
    assert seconds == {
        stage: pytest.approx(row[f"seconds_{stage}"], abs=1e-5)
        for stage in ("model", "build", "judge", "profile")
        if row[f"seconds_{stage}"] > 0
    }
    told = stages["model"].attributes
    assert told["gen_ai.request.model"] == "relay/a"
    assert told["gen_ai.usage.input_tokens"] == row["prompt_tokens"]


def test_a_turn_without_a_correct_kernel_is_an_error():
    failed = (load_runs(SAMPLED)["status"] != "correct").sum()
    errors = [span for span in spans_of(SAMPLED) if not span.status.is_unset]
    assert len(errors) == failed > 0


class Collector(BaseHTTPRequestHandler):
    paths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        assert len(self.rfile.read(int(self.headers["Content-Length"]))) > 1000
        self.paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def test_each_span_is_sent_once_to_the_endpoint():
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = command("experiments.export", "otlp", REFINED, "--endpoint", url)
        server.shutdown()
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.endswith(f"{len(spans_of(REFINED))} spans sent\n")
    assert set(Collector.paths) == {"/v1/traces"}


def test_an_endpoint_that_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        url = f"http://127.0.0.1:{server.server_port}"
    line = refused("experiments.export", "otlp", REFINED, "--endpoint", url)
    assert f"{url}/v1/traces took no spans" in line
    line = refused("experiments.export", "otlp", REFINED, "--endpoint", "localhost:4318")
    assert "give a URL" in line
