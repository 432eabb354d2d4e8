from pathlib import Path

import pytest

from agent.config.options import RunOptions, merge_layers
from agent.config.run_config import RunConfig
from problems.errors import UsageError


def test_flags_win_over_items_and_unset_flags_override_nothing() -> None:
    flags: dict[str, object] = {"budget": "7", "seed": None, "problems": [], "model_args": {}}
    found = merge_layers(["budget=3", "seed=5", "problem=x", "model_args.top_p=0.5"], flags)
    assert found.given() == {
        "budget": 7,
        "seed": 5,
        "problems": ("x",),
        "model_args": {"top_p": 0.5},
    }


def test_model_arguments_of_several_layers_add_up() -> None:
    found = merge_layers(["model_args.top_p=0.5"], {"model_args": {"max_tokens": 10}})
    assert found.model_args == {"top_p": 0.5, "max_tokens": 10}


def test_every_setting_of_a_run_can_be_given() -> None:
    assert set(RunConfig.model_fields) <= set(RunOptions.model_fields)


def test_a_saved_configuration_can_be_given_again(tmp_path: Path) -> None:
    import yaml

    config = RunConfig(budget=3, temperature=0.5, problems=("a", "b"), output=tmp_path / "run")
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    found = merge_layers([str(file)], {})
    for key, value in config:
        assert getattr(found, key) == value


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            {"strategy": "evolve"},
            "--strategy: 'evolve' should be 'refine', 'sample', 'hybrid' or 'agent'",
        ),
        ({"budget": "0"}, "--budget: '0' should be greater than or equal to 1"),
        ({"budget": "many"}, "--budget: 'many' should be a valid integer"),
        ({"budget_usd": "-1"}, "--budget-usd"),
        ({"start_from": "first"}, "--start-from: 'first'"),
        ({"baselines": ["tensorrt"]}, "--baseline: 'tensorrt'"),
        ({"levels": ["one"]}, "--level: 'one'"),
        ({"budget_usd": "0"}, "--budget-usd: '0' should be greater than 0"),
        ({"device": "tpu"}, "--device: 'tpu' is not one of auto, all, cpu, cuda, cuda:N"),
        ({"model_args": {"api_key": "sk-secret"}}, "set the provider's environment variable"),
        ({"model_args": {"aws_secret_access_key": "x"}}, "written into the run's record"),
    ],
)
def test_a_value_that_cannot_be_names_its_option(flags: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        merge_layers([], flags)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value) and "sk-secret" not in str(caught.value)
