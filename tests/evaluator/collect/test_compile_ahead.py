"""References are compiled beside a judge, which finds them compiled."""

import threading
from contextlib import closing
from pathlib import Path

import pytest
import torch

from evaluator.builder.builder import Builder
from evaluator.collect.rival_figures import rival_figures
from evaluator.errors import JudgeDiedError
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.switchboard import Switchboard
from evaluator.judge.judge import Judge
from evaluator.judge.workers.zygote import Zygote
from evaluator.rival import CheckRequest, Rival
from evaluator.settings import Settings
from evaluator.walls.environment import compiled_in
from tests.evaluator.made_requests import SCALE_AND_BIAS

ASKED = CheckRequest(problem_id="a", reference=SCALE_AND_BIAS, settings=Settings(), rival="compile")


@pytest.mark.thorough
def test_the_judge_compiles_nothing_that_was_compiled_ahead(tmp_path: Path) -> None:
    with closing(
        Switchboard("evaluator.collect.compile_ahead", "cpu", str(tmp_path), "1")
    ) as compiler:
        compiler.ask(ASKED.model_dump_json().encode())
    kinds = ("aotautograd", "fxgraph")
    ahead = [set((tmp_path / "inductor" / kind).rglob("*")) for kind in kinds]
    assert all(ahead)
    zygote, builder = Zygote(compiled_in(tmp_path)), Builder(tmp_path / "builds", cuda_arch=None)
    with closing(Judge(torch.device("cpu"), builder, zygote)) as judge:
        assert judge.check(ASKED, rival_figures).compile_us
    assert ahead == [set((tmp_path / "inductor" / kind).rglob("*")) for kind in kinds]


def test_a_reference_is_compiled_while_its_problem_is_set_up(tmp_path: Path) -> None:
    told: list[object] = []
    at_once = threading.Barrier(2)

    def judge(question: bytes) -> bytes:
        told.append(begins := CheckRequest.model_validate_json(question).begins)
        if begins:
            at_once.wait(30)
        return Rival().model_dump_json().encode()

    def compiler(question: bytes) -> bytes:
        at_once.wait(30)
        told.append("compiled")
        raise JudgeDiedError("which the judge makes up for")

    with LocalExecutor("cuda:0", cache=tmp_path) as executor:
        (slot,) = executor._slots
        slot.judge.ask, executor._compiler.ask = judge, compiler
        executor._kept.keep = lambda request, device, found: told.append("kept")
        assert executor._checked(ASKED) == Rival()
    assert told == [True, "compiled", False, "kept"]
