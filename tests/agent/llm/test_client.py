import threading
from dataclasses import replace

import pytest

from agent.llm.client import LiteLLMClient, make_client
from agent.llm.failure import (
    ModelError,
    ModelInterruptedError,
    ModelRefusedError,
    ModelUnavailableError,
    PromptRefusedError,
    RetryPolicy,
)
from agent.record.completion import CompletionRequest, Message
from problems.errors import UsageError
from tests.agent.conftest import KEY
from tests.agent.llm.provider_server import Reply, answer, refusal

STREAM = {"stream": True, "stream_options": {"include_usage": True}}


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        return False


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def client(time):
    return LiteLLMClient(sleep=time.sleep, clock=lambda: time.now)


def request_to(server, **changes):
    arguments = {"api_base": server.url, "timeout": 20, **changes.pop("arguments", {})}
    wanted = {
        "model": "openai/test-model",
        "messages": (Message(role="user", content="Write a kernel."),),
        "problem": "level1_1_add",
        **changes,
    }
    return CompletionRequest(arguments=arguments, **wanted)


def test_a_good_answer(server, client, time):
    server.will(answer("The kernel.", reasoning_content="First I think."))
    wanted = request_to(server, temperature=0.5, seed=7, arguments={"max_tokens": 900, "top_k": 3})
    got = client.complete(wanted)
    assert got.text == "The kernel."
    assert got.reasoning == "First I think."
    assert got.finish_reason == "stop"
    assert (got.model_asked, got.model_answered) == ("openai/test-model", "test-model-2026")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (1000, 500)
    assert (got.usage.reasoning_tokens, got.usage.cached_tokens) == (300, 200)
    assert got.usage.cost_usd is None  # a model without a price is not free
    assert got.attempts == 1
    assert time.slept == []
    assert server.requests == [
        {
            "model": "test-model",
            "messages": [{"role": "user", "content": "Write a kernel."}],
            "temperature": 0.5,
            "seed": 7,
            "max_tokens": 900,
            "top_k": 3,
            **STREAM,
        }
    ]


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [("<think>\nhm\n</think>\n\nDone.", "Done.", "hm"), (None, "", "")],
)
def test_reasoning_is_kept_apart(server, client, content, text, reasoning):
    server.will(answer(content, finish_reason="length"))
    got = client.complete(request_to(server))
    assert (got.text, got.reasoning) == (text, reasoning)
    assert got.finish_reason == "length"


@pytest.mark.parametrize(
    "model", ["openai/test-model", "hosted_vllm/test-model", "deepseek/deepseek-chat"]
)
def test_rate_limit_then_good_waits_as_told(server, client, time, model, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    server.will(refusal(429, retry_after="7"), answer())
    told = []
    got = client.complete(request_to(server, model=model), told.append)
    assert got.attempts == len(server.requests) == 2
    assert 7 <= time.slept[0] <= 7.7
    (line,) = told
    assert line.endswith((f"; {model} is asked again in 7 s", f"; {model} is asked again in 8 s"))


@pytest.mark.parametrize(
    "bad",
    [
        refusal(500),
        refusal(502),
        refusal(503),
        refusal(529),
        refusal(408),
        Reply(body=b"{not json"),
        Reply(body=b"<html>gateway</html>"),
        Reply(body=b""),
        Reply(body=b'{"id": "x", "choices": [{"index"', cut=True),
    ],
    ids=["500", "502", "503", "529", "408", "not json", "html", "nothing", "cut off"],
)
# LiteLLM speaks to the first through OpenAI's library, to the second through its own.
@pytest.mark.parametrize("model", ["openai/test-model", "hosted_vllm/test-model"])
def test_a_transient_failure_then_good(server, client, time, bad, model):
    server.will(bad, answer("good"))
    got = client.complete(request_to(server, model=model))
    assert got.text == "good"
    assert got.model_answered.endswith("test-model-2026")
    assert got.attempts == len(server.requests) == 2
    assert 0.5 <= time.slept[0] <= 1.0


def test_failing_for_ever_ends(server, client, time):
    server.will(refusal(500, "the backend is on fire"))
    with pytest.raises(ModelUnavailableError, match="no answer after 6 requests") as caught:
        client.complete(request_to(server))
    assert "the backend is on fire" in str(caught.value)
    assert len(server.requests) == 6
    assert len(time.slept) == 5
    assert time.slept == sorted(time.slept)  # it backs off: at least doubled halves


def test_back_off_is_the_same_for_the_same_turn_and_differs_between_turns(server, time):
    slept = []
    for turn in (0, 0, 1):
        one = Time()
        server.replies.clear()
        server.will(refusal(500))
        client = LiteLLMClient(sleep=one.sleep, clock=lambda one=one: one.now)
        with pytest.raises(ModelUnavailableError):
            client.complete(request_to(server, turn=turn))
        slept.append(one.slept)
    assert slept[0] == slept[1] != slept[2]


def test_total_time_is_bounded(server, time):
    policy = RetryPolicy(attempts=100, total_s=60.0)
    client = LiteLLMClient(policy=policy, sleep=time.sleep, clock=lambda: time.now)
    server.will(refusal(500))
    with pytest.raises(ModelUnavailableError, match="would have to wait"):
        client.complete(request_to(server))
    assert time.now <= 60
    assert len(server.requests) < 12


@pytest.mark.parametrize(
    "stalled",
    [Reply(stall=True), replace(answer("x" * 5000), stall=True, cut=True)],
    ids=["before the first byte", "in the midst of the body"],
)
def test_a_stalled_answer_is_a_time_out(server, client, time, stalled):
    server.will(stalled, answer("good"))
    got = client.complete(request_to(server, arguments={"timeout": 0.5}))
    assert got.text == "good"
    assert got.attempts == len(server.requests) == 2
    assert len(time.slept) == 1


def test_an_unreachable_server_is_transient(server, time):
    client = LiteLLMClient(policy=RetryPolicy(attempts=2), sleep=time.sleep)
    wanted = request_to(server, arguments={"api_base": "http://127.0.0.1:9/v1"})
    with pytest.raises(ModelUnavailableError, match="no answer after 2 requests"):
        client.complete(wanted)


def test_an_empty_choice_is_asked_again_and_its_tokens_are_counted(server, client):
    server.will(answer(choices=[]), answer("good"))
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
    got = client.complete(request_to(server, arguments=prices))
    assert got.text == "good"
    assert got.attempts == len(server.requests) == 2
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (2000, 1000)
    assert got.usage.cost_usd == pytest.approx(2 * (1000e-6 + 500e-5))


@pytest.mark.parametrize(
    ("last", "error", "billed"),
    [
        (answer(choices=[]), ModelUnavailableError, 6),
        (refusal(500), ModelUnavailableError, 2),
        (refusal(429, retry_after="86400"), ModelUnavailableError, 2),
        (refusal(401), ModelRefusedError, 2),
        (refusal(400, "x", code="context_length_exceeded"), PromptRefusedError, 2),
    ],
    ids=["more of them", "500", "wait too long", "401", "too long"],
)
def test_empty_choices_are_billed_however_it_ends(server, client, last, error, billed):
    server.will(answer(choices=[]), answer(choices=[]), last)
    prices = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
    with pytest.raises(error) as caught:
        client.complete(request_to(server, arguments=prices))
    usage = caught.value.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (1000 * billed, 500 * billed)
    assert usage.cost_usd == pytest.approx(billed * (1000e-6 + 500e-5))


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (refusal(400, "top_k must be positive"), ModelRefusedError, "top_k must be positive"),
        (refusal(401, "wrong key"), ModelRefusedError, "key was refused"),
        (refusal(403, "not yours"), ModelRefusedError, "key was refused"),
        (refusal(404, "no such model"), ModelRefusedError, "api_base"),
        (refusal(422, "bad field"), ModelRefusedError, "bad field"),
        (refusal(429, "pay", code="insufficient_quota"), ModelRefusedError, "no credit left"),
        (
            refusal(400, "maximum context length is 10", code="context_length_exceeded"),
            PromptRefusedError,
            "longer than the model reads",
        ),
        (
            refusal(400, "Invalid prompt: flagged as potentially violating our usage policy"),
            PromptRefusedError,
            "content policy",
        ),
    ],
)
def test_what_cannot_be_helped_fails_at_once(server, client, time, reply, error, said):
    server.will(reply)
    with pytest.raises(error) as caught:
        client.complete(request_to(server))
    assert len(server.requests) == 1
    assert time.slept == []
    assert caught.value.usage is None
    assert said in str(caught.value)
    assert "openai/test-model" in str(caught.value)
    assert "\n" not in str(caught.value)
    # A user's mistake is shown like every other one; a refused prompt is not one.
    assert isinstance(caught.value, UsageError) == (error is ModelRefusedError)


@pytest.mark.parametrize("status", [400, 401, 500])
def test_a_key_that_the_provider_quotes_does_not_come_back(server, client, caplog, status):
    caplog.set_level("DEBUG")
    server.will(refusal(status, f"I don't like {KEY} nor sk-proj-abcdefghijkl"))
    with pytest.raises(ModelError) as caught:
        client.complete(request_to(server))
    told = [str(caught.value), caplog.text]
    error = caught.value
    while (error := error.__cause__ or error.__context__) is not None:
        told.append(f"{error!r}")
    assert "I don't like <OPENAI_API_KEY> nor <key>" in told[0]
    assert KEY not in "".join(told)


def test_an_answer_that_gemini_cannot_have_sent(server, client, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    server.will(Reply(body=b"{not json"))
    with pytest.raises(ModelUnavailableError, match="after 6 requests"):
        client.complete(request_to(server, model="gemini/gemini-2.5-pro"))


def test_a_server_declared_free_is_free(server, client):
    server.will(answer())
    prices = {"input_cost_per_token": 0, "output_cost_per_token": 0.0}
    assert client.complete(request_to(server, arguments=prices)).usage.cost_usd == 0.0
    assert set(server.requests[0]) == {"model", "messages", *STREAM}  # prices are ours


def test_litellms_price(server, client):
    server.will(answer(model="gpt-4o"))
    got = client.complete(request_to(server, model="openai/gpt-4o"))
    # 800 tokens in full, 200 from the cache at half the price, 500 out: OpenAI's prices of 2024-10.
    assert got.usage.cost_usd == pytest.approx(800 * 2.5e-6 + 200 * 1.25e-6 + 500 * 1e-5)


def test_a_server_that_counts_nothing(server, client):
    server.will(answer("x" * 401, usage={}))
    got = client.complete(request_to(server))
    assert got.usage.completion_tokens == 101
    assert got.usage.prompt_tokens == 4  # "Write a kernel." is 15 characters


def test_the_stop_event_itself_ends_a_long_wait(server):
    stop = threading.Event()
    server.will(answer(choices=[]))
    client = LiteLLMClient(stop=stop)
    timer = threading.Timer(0.2, stop.set)  # the wait takes half a second at least
    timer.start()
    with pytest.raises(ModelInterruptedError) as caught:
        client.complete(request_to(server))
    timer.join()
    assert caught.value.usage.prompt_tokens == 1000
    with pytest.raises(ModelInterruptedError):  # and nothing new is begun
        client.complete(request_to(server))
    assert len(server.requests) == 1


def test_make_client_looks_before_it_leaps(server, monkeypatch, tmp_path):
    server.will(answer("made"))
    client = make_client("openai/test-model", {"api_base": server.url})
    assert client.complete(request_to(server)).text == "made"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        make_client("openai/test-model", {"api_base": server.url})
    (tmp_path / "completions").mkdir()
    with pytest.raises(UsageError, match="the run that it makes"):
        make_client(f"replay/{tmp_path}", {}, run_dir=tmp_path)
