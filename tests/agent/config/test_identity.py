"""What makes a run the same run."""

from pathlib import Path

import pytest

from agent.config.identity import MAY_CHANGE, digest, first_difference
from agent.config.run_config import RunConfig


def run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({"output": Path("x"), **settings})


OTHER = {
    "strategy": "sample",
    "feedback": "G",
    "problems": ("a",),
    "suite": "elsewhere",
    "model": "openai/x",
    "model_args": {"top_p": 0.5},
    "backend": "triton",
    "device": "cuda:0",
    "precision": "bf16",
    "protocol": "kernelbench",
    "inputs": "recipe",
    "shared_drafts": True,
    "design_limit": False,
    "search_cases": 2,
    "rival": "compile",
    "budget": 3,
    "budget_usd": 1.0,
    "drafts": 3,
    "refine_best": 1,
    "fork": "runs/before@2",
    "budget_tokens": 5,
    "budget_seconds": 6.0,
    "budget_device_seconds": 7.0,
    "budget_profiles": 8,
    "allow_unpriced": True,
    "temperature": 0.3,
    "seed": 9,
    "start_from": "last",
    "history": "last",
    "confirm": 1,
    "baselines": ("eager", "compile"),
    "timing_seconds": 4.0,
    "audit": "never",
    "require": "custom",
    "isolation": "strict",
    "executor": "ray",
    "ray_address": "head:6379",
    "workers": 4,
    "output": "y",
}


@pytest.mark.parametrize("name", RunConfig.model_fields)
def test_each_setting_is_either_identity_or_may_change(name: str) -> None:
    changed = run(**{name: OTHER[name]})
    assert changed != run()
    if name in MAY_CHANGE:
        assert digest(changed) == digest(run()) and first_difference(run(), changed) is None
    else:
        assert digest(changed) != digest(run())
        difference = first_difference(run(), changed)
        assert difference is not None and difference[0] == name


def test_order_of_problems_and_where_things_lie_do_not_count() -> None:
    assert digest(run(problems=("a", "b"))) == digest(run(problems=("b", "a")))
    assert digest(run(suite="/here/bench")) == digest(run(suite="../there/bench"))
    assert digest(run(device="cuda:0")) == digest(run(device="cuda:5"))
    assert digest(run(device="cuda:0")) == digest(run(device="cuda:0,cuda:3"))
