import pytest

from agent.llm.check import check_model
from problems.errors import UsageError

NAMES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL")
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "args"),
    [
        ("openai/gpt-4o", {"max_tokens": 100, "top_p": 0.9}),
        ("gpt-4o", {}),
        ("openai/gpt-5", {"reasoning_effort": "low"}),
        ("openai/my-own", {"api_base": "http://127.0.0.1:8000/v1"}),
        ("openai/brand-new", PRICES),
        ("hosted_vllm/my/model", {"api_base": "http://127.0.0.1:8000/v1", "top_k": 20}),
        ("ollama/llama3", {}),
        ("offline/tuner", {}),
    ],
)
def test_what_can_be_asked(model, args):
    check_model(model, args)


@pytest.mark.parametrize(
    ("model", "args", "said"),
    [
        ("opnai/gpt-4o", {}, "did you mean openai/gpt-4o?"),
        ("ofline/tuner", {}, "did you mean offline/tuner?"),
        ("gpt-4oo", {}, "did you mean gpt-4o"),
        ("openai/gpt-4oo", {}, "did you mean openai/gpt-4o?"),
        ("openai/", {}, "names no model"),
        ("zzzz", {}, "write PROVIDER/MODEL"),
        ("anthropic/claude-opus-4-5", {}, "export ANTHROPIC_API_KEY="),
        ("openai/gpt-4o", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("openai/gpt-4o", {"max_token": 9}, "did you mean max_tokens?"),
        ("openai/gpt-4o", {"drop_params": True}, "changes the experiment"),
        ("openai/gpt-4o", {"num_retries": 3}, "the run's own"),
        ("openai/gpt-4o", {"api_key": "x"}, "would be recorded"),
        ("openai/gpt-4o", {"input_cost_per_token": 1e-6}, "prices come in pairs"),
        ("openai/gpt-4o", {"timeout": "long"}, "timeout=600"),
        ("offline/other", {}, "offline/tuner"),
        ("offline/tuner", {"max_tokens": 5}, "takes no max_tokens"),
        ("offline/", {}, "names nothing"),
        ("replay/no/such/run", {}, "no recording no/such/run"),
        (f"relay/{__file__}", {}, "is no folder to relay through"),
        ("relay/answers", {"wait": -1}, "try wait=0"),
    ],
)
def test_what_cannot_is_said_in_one_line(model, args, said, capfd):
    with pytest.raises(UsageError) as caught:
        check_model(model, args)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "drop_params =" not in str(caught.value)
    assert capfd.readouterr().out == ""


def test_a_temperature_that_the_model_refuses():
    check_model("openai/gpt-4o", {}, temperature=0.2)
    with pytest.raises(UsageError, match="temperature"):
        check_model("openai/gpt-5", {}, temperature=0.2)


def test_a_missing_key_is_named_and_no_value_is():
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY")
        with pytest.raises(UsageError, match="export OPENAI_API_KEY=") as caught:
            check_model("openai/own", {"api_base": "http://127.0.0.1:1/v1"})
        assert "any text" in str(caught.value)
