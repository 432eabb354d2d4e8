import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wandb.proto.wandb_internal_pb2 import Record

from experiments.analysis.run_facts import load_run
from experiments.analysis.run_report import report_on
from experiments.runs import load_runs
from tests.command import command
from tests.experiments.export.exports import REFINED, SAMPLED

BLOCK = 32768
LAST = (1, 4)  # a chunk that is a whole record, or the last of one


def records(file: Path) -> Iterator[Record]:
    """What a `.wandb` file holds: LevelDB's log format after a header of 7 bytes."""
    content, place, part = file.read_bytes(), 7, b""
    while place + 7 <= len(content):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        _, size, kind = struct.unpack_from("<IHB", content, place)
        part += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in LAST:
            yield Record.FromString(part)
            part = b""


def told(items: Any) -> dict[str, Any]:
    return {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Record]]:
    folder = tmp_path_factory.mktemp("wandb")
    done = command(
        *("experiments.export", "wandb", REFINED, SAMPLED, "-o", folder, "--project", "kernels"),
        WANDB_MODE="offline",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "72 turns logged\n")
    assert not list(folder.glob("wandb/offline-run-*/files/*"))  # packages, platform, source
    runs = {}
    for file in folder.glob("wandb/offline-run-*/*.wandb"):
        content = list(records(file))
        run = next(r.run for r in content if r.WhichOneof("record_type") == "run")
        assert run.project == "kernels"
        runs[run.display_name] = content
    return runs


def test_a_step_a_turn(logged: dict[str, list[Record]]):
    assert set(logged) == {REFINED.name, SAMPLED.name}
    for run in (REFINED, SAMPLED):
        steps = [told(r.history.item) for r in logged[run.name] if r.HasField("history")]
        table = load_runs(run)
        assert [step["problem"] for step in steps] == list(table["problem"])
        assert [step["call"] for step in steps] == list(table["call"])
        assert [step.get("speedup") for step in steps] == [
            None if value != value else value for value in table["speedup"]
        ]
        assert all("path" not in step for step in steps)


def test_settings_and_no_word_of_this_machine(logged: dict[str, list[Record]]):
    run = next(r.run for r in logged[SAMPLED.name] if r.HasField("run"))
    config = told(run.config.update)
    assert (config["strategy"], config["device"]) == ("sample", "AMD EPYC")
    assert not run.host
    assert not any(r.HasField("stats") for r in logged[SAMPLED.name])


def test_the_summary_is_what_the_report_says(logged: dict[str, list[Record]]):
    summary: dict[str, Any] = {}
    for record in logged[REFINED.name]:
        if record.HasField("summary"):
            summary |= told(record.summary.update)
    report = report_on(load_run(REFINED), seed=0)
    figures = {f.figure: f.estimate.value for f in report.figures if f.estimate}
    assert {k: summary[k] for k in ("fast_0", "fast_1", "speedup_kept", "tokens")} == {
        k: pytest.approx(figures[k]) for k in ("fast_0", "fast_1", "speedup_kept", "tokens")
    }
