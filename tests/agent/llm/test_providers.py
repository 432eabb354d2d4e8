"""Our own providers, which answer in place of a language model."""

import threading
import time
from pathlib import Path

import pytest

from agent.llm.client import make_client
from agent.llm.failure import ModelInterruptedError, ModelRefusedError, ModelUnavailableError
from agent.llm.relay import RelayClient
from agent.record.completion import Completion, CompletionRequest, Message, Tell, unheard
from problems.errors import UsageError
from tests.agent.llm.test_recording import made_run
from tests.waiting import once

PROMPT = "Write a kernel.\n\n```python\nx = 1\n```\n"


def request_to(model: str, **changes: object) -> CompletionRequest:
    wanted = {"messages": (Message(role="user", content=PROMPT),), "problem": "p", **changes}
    return CompletionRequest(model=model, **wanted)


def complete(request: CompletionRequest, tell: Tell = unheard) -> Completion:
    return make_client(request.model, request.arguments).complete(request, tell)


class TestOffline:
    def test_the_tuner_learns_the_request_and_nothing_else(self, monkeypatch):
        import agent.tuner

        heard = []

        def answer(messages, temperature, seed):
            heard.append((messages, temperature, seed))
            return "12345678"

        monkeypatch.setattr(agent.tuner, "answer", answer, raising=False)
        wanted = request_to("offline/tuner", temperature=0.5, seed=9, sample=4, turn=2)
        got = complete(wanted)
        assert heard == [([{"role": "user", "content": PROMPT}], 0.5, 9)]
        assert got.text == "12345678"
        assert (got.model_asked, got.model_answered) == ("offline/tuner", "tuner")
        assert got.usage.prompt_tokens == -(-len(PROMPT) // 4)
        assert got.usage.completion_tokens == 2
        assert got.usage.cost_usd == 0.0


class TestReplay:
    def test_a_run_by_sample_and_turn(self, tmp_path):
        run = made_run(tmp_path / "my run", ("p", 0, 0, "a"), ("p", 0, 1, "b"), ("p", 1, 0, "c"))
        model = f"replay/{run}"
        texts = [
            complete(request_to(model, sample=sample, turn=turn)).text
            for sample, turn in ((0, 1), (1, 0), (0, 0))
        ]
        assert texts == ["b", "c", "a"]
        got = complete(request_to(model))
        assert (got.reasoning, got.finish_reason) == ("because", "length")
        assert got.model_answered == "gpt-4o-2024-08-06"
        assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (10, 5)
        assert got.usage.cost_usd == 0.0  # what was paid then is not paid again

    def test_a_turn_that_was_not_recorded(self, tmp_path):
        run = made_run(tmp_path / "run", ("p", 0, 0, "a"))
        with pytest.raises(ModelRefusedError, match="no answer for p, sample 0, turn 5"):
            complete(request_to(f"replay/{run}", turn=5))
        with pytest.raises(UsageError, match="no answer for q"):
            complete(request_to(f"replay/{run}", problem="q"))


def ask(folder: Path, content: str = PROMPT, tell: Tell = unheard, **arguments: float) -> str:
    """Of a relay that looks often."""
    relay = RelayClient(folder, threading.Event(), poll_s=0.01, settle_s=0.1)
    messages = (Message(role="user", content=content),)
    request = request_to(f"relay/{folder}", messages=messages, arguments=arguments)
    return relay.complete(request, tell).text


class Answerer(threading.Thread):
    """Writes an answer once its prompt is there, in pieces."""

    def __init__(self, folder: Path, stem: str, *pieces: str, pause_s: float = 0.03) -> None:
        super().__init__()
        self.prompt = folder / f"{stem}.prompt.md"
        self.answer = folder / f"{stem}.answer.md"
        self.pieces, self.pause_s = pieces, pause_s
        self.seen = ""
        self.start()

    def run(self) -> None:
        once(self.prompt.exists)
        self.seen = self.prompt.read_text()
        with self.answer.open("w") as file:
            for piece in self.pieces:
                time.sleep(self.pause_s)
                file.write(piece)
                file.flush()


class TestRelay:
    def test_through_the_client(self, tmp_path):
        answerer = Answerer(tmp_path, "p-0-3", "The kernel.")
        told = []
        got = complete(request_to(f"relay/{tmp_path}", turn=3), told.append)
        answerer.join()
        assert told == [f"read {answerer.prompt} and write the answer to {answerer.answer}"]
        assert got.text == "The kernel."
        assert answerer.seen == PROMPT
        assert got.usage.cost_usd == 0.0
        assert got.usage.completion_tokens == 3
        assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []

    def test_an_answer_that_is_being_written_is_waited_for(self, tmp_path):
        pieces = [f"line {i}\n" for i in range(8)]
        answerer = Answerer(tmp_path, "p-0-0", *pieces)
        assert ask(tmp_path) == "".join(pieces)
        answerer.join()

    def test_an_empty_file_is_no_answer_yet(self, tmp_path):
        (tmp_path / "p-0-0.answer.md").touch()
        (tmp_path / "p-0-0.prompt.md").write_text(PROMPT)
        with pytest.raises(ModelUnavailableError, match=r"p-0-0\.answer\.md within 0\.4 s"):
            ask(tmp_path, timeout=0.4)

    def test_a_resumed_run_finds_its_answer(self, tmp_path):
        with pytest.raises(ModelUnavailableError):
            ask(tmp_path, timeout=0.05)
        (tmp_path / "p-0-0.answer.md").write_text("late")
        told = []
        assert ask(tmp_path, tell=told.append) == "late"
        assert told == []  # there is nothing left to do

    def test_an_answer_to_another_prompt_is_not_taken(self, tmp_path):
        (tmp_path / "p-0-0.prompt.md").write_text("Another prompt.")
        (tmp_path / "p-0-0.answer.md").write_text("stale")
        with pytest.raises(ModelRefusedError, match="answers another prompt"):
            ask(tmp_path)
        (tmp_path / "p-0-0.answer.md").unlink()
        with pytest.raises(ModelUnavailableError):
            ask(tmp_path, timeout=0.05)
        assert (tmp_path / "p-0-0.prompt.md").read_text() == PROMPT

    def test_stop_ends_the_wait(self, tmp_path):
        stop = threading.Event()
        client = make_client(f"relay/{tmp_path}", {}, stop=stop)
        timer = threading.Timer(0.3, stop.set)
        timer.start()
        with pytest.raises(ModelInterruptedError, match=r"p-0-0\.answer\.md"):
            client.complete(request_to(f"relay/{tmp_path}"))
        timer.join()
        assert (tmp_path / "p-0-0.prompt.md").exists()
