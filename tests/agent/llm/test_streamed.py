"""Answers that are taken as a stream from a real server: the record is that of a whole answer."""

import json
from dataclasses import replace

import pytest

from agent.llm.client import LiteLLMClient
from tests.agent.llm.provider_server import Reply, answer, events, refusal
from tests.agent.llm.test_client import request_to

NO_STREAM = refusal(400, "Your organization must be verified to stream this model.")
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}
ANSWERS = {
    "plain": answer("A kernel.\n\n```python\nx = 1\n```\nThat is all."),
    "reasoning": answer("The kernel.", reasoning_content="First I think, and then I write."),
    "tags": answer("<think>\nhm\n</think>\n\nDone."),
    "cut by its limit": answer("```python\nx =", finish_reason="length"),
    "empty": answer(None, finish_reason="length"),
    "not counted": answer("x" * 401, usage={}),
    "priced": answer("The kernel.", model="gpt-4o"),
}


@pytest.fixture
def client():
    return LiteLLMClient(sleep=lambda seconds: False, clock=lambda: 0.0)


@pytest.mark.parametrize("reply", ANSWERS.values(), ids=ANSWERS.keys())
def test_the_record_is_the_same_with_and_without_a_stream(server, client, reply):
    model = "openai/gpt-4o" if b"gpt-4o" in reply.body else "openai/test-model"
    server.will(reply)
    streamed = client.complete(request_to(server, model=model))
    server.replies.clear()
    server.will(NO_STREAM, reply)
    whole = client.complete(request_to(server, model=model))
    assert [request.get("stream") for request in server.requests] == [True, True, None]
    assert streamed == whole
    assert streamed.attempts == 1


def test_the_text_is_told_while_it_grows_and_without_its_reasoning(server, client):
    heard: list[str] = []
    server.will(answer("<think>no ```</think>\nFirst the plan, then the kernel."))
    got = client.complete(request_to(server), so_far=heard.append)
    assert heard[-1] == got.text == "First the plan, then the kernel."
    assert len(set(heard)) > 3
    assert all(got.text.startswith(text) for text in heard)


# LiteLLM speaks to the first through OpenAI's library, to the second through its own.
@pytest.mark.parametrize("model", ["openai/test-model", "hosted_vllm/test-model"])
def test_a_server_that_does_not_stream_is_asked_for_whole_answers(server, client, model):
    server.will(replace(answer("whole"), whole=True))
    first = client.complete(request_to(server, model=model, arguments=PRICES))
    assert (first.text, first.attempts) == ("whole", 2)
    # The answer that could not be read was billed as well.
    assert first.usage.prompt_tokens > 1000
    assert first.usage.cost_usd > 1000e-6 + 500e-5
    again = client.complete(request_to(server, model=model, arguments=PRICES))
    assert (again.text, again.attempts, again.usage.prompt_tokens) == ("whole", 1, 1000)
    assert [request.get("stream") for request in server.requests] == [True, None, None]


def test_a_refused_stream_costs_one_request_a_run(server, client):
    server.will(NO_STREAM, answer("whole"))
    for _ in range(2):
        assert client.complete(request_to(server)).attempts == 1
    assert [request.get("stream") for request in server.requests] == [True, None, None]


@pytest.mark.parametrize("model", ["openai/test-model", "hosted_vllm/test-model"])
@pytest.mark.parametrize("way", ["connection", "end of file"])
def test_a_stream_that_breaks_off_is_asked_for_again_and_not_charged(server, client, model, way):
    half = answer("Half of an answer, and then noth")
    if way == "end of file":  # a proxy that closes in good order, as if all were sent
        sent = events(json.loads(half.body), usage=False, finish=False)[:-1]
        half = Reply(body=b"".join(sent), kind="text/event-stream")
    else:
        half = replace(half, cut=True)
    server.will(half, answer("good"))
    heard: list[str] = []
    got = client.complete(request_to(server, model=model), so_far=heard.append)
    assert (got.text, got.attempts) == ("good", 2)
    assert got.usage.prompt_tokens == 1000
    assert heard[-1] == "good"
    assert any(text.startswith("Half") for text in heard)
