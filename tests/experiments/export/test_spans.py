from pathlib import Path

import pytest

from experiments.export.recorded_run import recorded_runs
from experiments.runs import load_runs
from tests.command import command, refused
from tests.experiments.export.collector import Collector, attributes, collector
from tests.experiments.export.exports import BY_HAND, REFINED, SAMPLED


def sent(server: Collector, *runs: Path) -> list[object]:
    done = command("experiments.export", "otlp", *runs, "--endpoint", server.url)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == f"{len(server.spans)} spans sent\n"
    return server.spans


def test_a_trace_a_problem_with_turns_and_stages():
    with collector() as server:
        spans = sent(server, BY_HAND)
    assert server.paths == {"/v1/traces"}
    assert {resource["service.name"] for resource in server.resources} == {"kernel-refinery"}
    table = load_runs(BY_HAND)
    roots = [span for span in spans if not span.parent_span_id]
    assert sorted(span.name for span in roots) == sorted(set(table["problem"]))
    assert len({span.trace_id for span in spans}) == len(roots) == 4
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    turns = [span for span in spans if span.name.startswith("turn ")]
    assert len(turns) == len(table)
    assert {by_id[span.parent_span_id].name for span in turns} == set(table["problem"])
    stages = [span for span in spans if span not in roots and span not in turns]
    for stage in stages:
        turn = by_id[stage.parent_span_id]
        assert turn.trace_id == stage.trace_id
        assert turn.start_time_unix_nano <= stage.start_time_unix_nano
        assert stage.end_time_unix_nano <= turn.end_time_unix_nano


def test_durations_and_attributes_are_those_of_the_record():
    with collector() as server:
        spans = sent(server, BY_HAND)
    row = load_runs(BY_HAND).iloc[0]
    turn = next(
        span
        for span in spans
        if (told := attributes(span)).get("kernel_refinery.problem") == row["problem"]
        and span.name == "turn 0.0"
        and told["kernel_refinery.call"] == row["call"]
    )
    assert attributes(turn)["kernel_refinery.speedup_low"] == row["speedup_low"]
    assert "kernel_refinery.path" not in attributes(turn)
    seconds = {
        span.name: (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        for span in spans
        if span.parent_span_id == turn.span_id
    }
    assert seconds == {
        stage: pytest.approx(row[f"seconds_{stage}"], abs=1e-5)
        for stage in ("model", "build", "judge", "profile")
        if row[f"seconds_{stage}"] > 0
    }
    call = next(s for s in spans if s.parent_span_id == turn.span_id and s.name == "model")
    told = attributes(call)
    assert told["gen_ai.request.model"] == "relay/a"
    assert told["gen_ai.usage.input_tokens"] == row["prompt_tokens"]


def test_a_turn_without_a_correct_kernel_is_an_error():
    with collector() as server:
        spans = sent(server, SAMPLED)
    failed = (load_runs(SAMPLED)["status"] != "correct").sum()
    assert failed > 0
    assert sum(span.status.code == 2 for span in spans) == failed


def test_the_same_turn_has_the_same_span_whenever_it_is_sent():
    ids = []
    for _ in range(2):
        with collector() as server:
            ids.append([(s.trace_id, s.span_id) for s in sent(server, REFINED)])
    assert ids[0] == ids[1]
    assert recorded_runs([REFINED])[0].id != recorded_runs([SAMPLED])[0].id


def test_an_endpoint_that_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with collector() as server:
        url = server.url
    line = refused("experiments.export", "otlp", REFINED, "--endpoint", url)
    assert f"{url}/v1/traces took no spans" in line
    line = refused("experiments.export", "otlp", REFINED, "--endpoint", "localhost:4318")
    assert "give a URL" in line
