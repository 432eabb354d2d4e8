from pathlib import Path

import pytest

from agent.config.options import check_options
from agent.dry_run import Plan, plan, plan_lines
from agent.resolution import resolve
from problems.errors import UsageError

PRICED = {
    "model": "hosted_vllm/mine",
    "model_args": {
        "api_base": "http://127.0.0.1:9/v1",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-5,
        "max_tokens": 1000,
    },
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "x")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def planned(folder: Path, **options: object) -> Plan:
    given = {"problems": ["level1_7_rms_norm", "level1_1_swish"], "output": folder / "run"}
    return plan(resolve(check_options({**given, **options})))


def told(found: Plan) -> str:
    return "\n".join(line for _, line in plan_lines(found, ("take note",)))


def test_the_most_that_a_priced_model_can_cost(tmp_path: Path) -> None:
    plain = planned(tmp_path, **PRICED, feedback="none")
    assert plain.calls == 20
    assert plain.most_usd == pytest.approx(20 * (plain.prompt_tokens * 1e-6 + 1000 * 1e-5))
    fed = planned(tmp_path, **PRICED)
    assert fed.most_usd is not None
    assert fed.most_usd > plain.most_usd


def test_a_limit_in_dollars_lowers_it_up_to_one_call_a_problem(tmp_path: Path) -> None:
    plain = planned(tmp_path, **PRICED, feedback="none")
    capped = planned(tmp_path, **PRICED, feedback="none", budget_usd=0.01)
    assert plain.most_usd is not None
    assert capped.most_usd == pytest.approx(0.02 + plain.most_usd / 10)
    assert "--budget-usd 0.01 a problem" in told(capped)


def test_without_a_price_it_is_unknown_and_not_free(tmp_path: Path) -> None:
    unpriced = {**PRICED, "model_args": {"api_base": "http://127.0.0.1:9/v1"}}
    found = planned(tmp_path, **unpriced)
    assert found.most_usd is None
    assert "dollars: unknown" in told(found)
    with pytest.raises(UsageError, match="--allow-unpriced"):
        planned(tmp_path, **unpriced, budget_usd=1.0)
    planned(tmp_path, **unpriced, budget_usd=1.0, allow_unpriced=True)


def test_what_is_measured_first_is_announced(tmp_path: Path) -> None:
    assert "what PyTorch reaches is added" in told(planned(tmp_path, **PRICED, rival="eager"))
    assert "what PyTorch reaches" not in told(planned(tmp_path, **PRICED))
