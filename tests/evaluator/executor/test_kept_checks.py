"""What the check of a problem found is known again only where nothing has changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evaluator.executor import kept_checks
from evaluator.executor.kept_checks import KEPT, KeptChecks
from evaluator.hardware.devices import describe
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import Precision, Settings
from tests.evaluator.made_requests import SCALE_AND_BIAS

KNOWN = {"rival": "eager", "reference": SCALE_AND_BIAS, "settings": Settings()}


def asked(folder: Path, **changed: object) -> CheckRequest:
    weights = folder / "mine.safetensors"
    weights.write_text(str(changed.pop("weights", "one")))
    return CheckRequest.model_validate({"problem_id": "a", "weights": weights} | KNOWN | changed)


def found(age: timedelta = timedelta(), needed_bytes: int = 0) -> Rival:
    at = (datetime.now(UTC) - age).isoformat(timespec="seconds")
    return Rival(eager_us=10.0, needed_bytes=needed_bytes, measured_at=at)


def test_it_is_known_again_whatever_the_problem_is_called(tmp_path: Path) -> None:
    kept, rival = KeptChecks(tmp_path), found()
    kept.keep(asked(tmp_path), "cpu", rival)
    other = asked(tmp_path, problem_id="b", settings=Settings(timing_seconds=9.0))
    assert kept.found(other, "cpu") == rival


@pytest.mark.parametrize(
    "changed",
    [
        {"reference": SCALE_AND_BIAS + "#"},
        {"hidden_references": (SCALE_AND_BIAS,)},
        {"rival": "compile"},
        {"weights": "two"},
        {"settings": Settings(precision=Precision.BF16)},
        {"settings": Settings(protocol="verified")},
        {"settings": Settings(threads=99)},
        {"settings": Settings(isolation="strict")},
    ],
    ids=str,
)
def test_what_is_judged_otherwise_is_checked_again(
    changed: dict[str, object], tmp_path: Path
) -> None:
    kept = KeptChecks(tmp_path)
    kept.keep(asked(tmp_path), "cpu", found())
    assert kept.found(asked(tmp_path, **changed), "cpu") is None


@pytest.mark.parametrize("changed", [{"uuid": "GPU-2"}, {"driver": "999.1"}, {"name": "other"}])
def test_another_card_or_driver_is_another_device(
    changed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, device = KeptChecks(tmp_path), replace(describe("cpu"), **changed)
    kept.keep(asked(tmp_path), "cpu", found())
    monkeypatch.setattr(kept_checks, "describe", lambda _: device)
    assert kept.found(asked(tmp_path), "cpu") is None


def test_what_is_old_or_needs_more_memory_than_is_free_says_nothing(tmp_path: Path) -> None:
    kept, request = KeptChecks(tmp_path), asked(tmp_path)
    for said in (found(KEPT), found(needed_bytes=2**60)):
        kept.keep(request, "cpu", said)
        assert kept.found(request, "cpu") is None
    (path,) = (tmp_path / "checks").iterdir()
    path.write_text("torn")
    assert kept.found(request, "cpu") is None
