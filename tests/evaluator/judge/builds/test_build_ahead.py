"""What is built ahead is found built by the judge, and nothing else that is seen there counts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.evaluation import EvaluationRequest, Status
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.service import Service
from evaluator.judge.builds.built_ahead import BuiltAhead
from tests.evaluator.deep_audit.programs import OWN
from tests.evaluator.made_requests import HONEST, evaluation_request
from tests.evaluator.test_survival import TEMPLATES

ENDLESS = f"""#include <torch/extension.h>
{TEMPLATES}
torch::Tensor f(torch::Tensor x) {{ return x * A<25, 0>::v; }}
"""
CAUGHT = f"""
from torch.utils.cpp_extension import load_inline
try:
    load_inline(name="endless", cpp_sources={ENDLESS!r}, functions=["f"])
except RuntimeError:
    pass
{HONEST}
"""
IN_A_LOOP = """
from torch.utils.cpp_extension import load_inline
while True:
    try:
        load_inline(name="no name", cpp_sources="")
    except RuntimeError:
        pass
"""


def request(source: str, **settings: float) -> EvaluationRequest:
    return evaluation_request(
        source, **({"timing_seconds": 0.2, "import_timeout_s": 20.0, "audit": "never"} | settings)
    )


@pytest.fixture(scope="module")
def ahead(shared_cache: Path) -> Iterator[Service]:
    service = Service("evaluator.judge.builds.build_ahead", "cpu", str(shared_cache))
    yield service
    service.close()


def built(ahead: Service, source: str, **settings: float) -> BuiltAhead:
    asked = request(source, **settings).model_dump_json()
    return BuiltAhead.model_validate_json(ahead.ask(asked.encode()))


@pytest.mark.thorough
def test_the_judge_finds_it_built(ahead: Service, executor: LocalExecutor) -> None:
    kernel = OWN.replace("#include", f"// {uuid.uuid4()}\n#include", 1)
    first = built(ahead, kernel)
    assert not first.cached
    assert first.seconds > 0
    assert built(ahead, kernel).cached
    evaluation = executor.evaluate(request(kernel))
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.build is not None
    assert evaluation.build.cached


@pytest.mark.parametrize(
    "source",
    [
        "class ModelNew(",
        "raise SystemExit(3)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import os\nos.write(3, b'rubbish' * 99)\nos.closerange(3, 99)",
        OWN.replace("x.size(1);", "x.size(1)"),
    ],
    ids=["no Python", "leaves", "kills itself", "spoils its channel", "no C++"],
)
def test_what_fails_here_costs_nothing_and_the_next_is_built(ahead: Service, source: str) -> None:
    built(ahead, source)
    assert built(ahead, "class ModelNew: pass") == BuiltAhead()
    assert ahead.pid is not None


@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (CAUGHT, {"build_timeout_s": 2.0}),
        (f"import time\ntime.sleep(60)\n{OWN}", {"import_timeout_s": 1.0}),
        (IN_A_LOOP, {}),
    ],
    ids=["a compiler", "an import", "builds in a loop"],
)
def test_what_runs_into_a_limit_is_refused_as_the_judge_would(
    ahead: Service, executor: LocalExecutor, source: str, settings: dict[str, float]
) -> None:
    refused = built(ahead, source, **settings).refused
    judged = executor.evaluate(request(source, **settings))
    assert refused is not None
    for field in ("status", "reason", "message", "detail", "device", "isolation", "is_lasting"):
        assert getattr(refused, field) == getattr(judged, field), field
    assert (refused.build is None) == (judged.build is None)
    if refused.build is not None and judged.build is not None:
        assert (refused.build.ok, refused.build.timed_out) == (False, judged.build.timed_out)
        assert refused.build.log == judged.build.log
        assert (refused.seconds.build > 0) == refused.build.timed_out
    assert refused.conditions["judged_on"] is None
    assert set(refused.conditions) >= {"threads", "torch", "python", "cores"}
