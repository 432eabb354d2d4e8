"""The socket of a session, and the command that goes through it."""

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_IMODE

import pytest

from agent.session.door import Tell, ask, is_open, open_door
from agent.session.tools import MOST_CHARACTERS, Answer
from evaluator.errors import InfrastructureError
from evaluator.ipc.socket_file import connected
from problems.errors import UsageError
from tests.command import command, refused

ANSWERS = {
    "list": Answer("two\x1b[2J\x9b\u2028\u202e"),
    "read": Answer("no", "refused"),
    "finish": Answer("x", "failed"),
}


def echo(tool: str, given: Mapping[str, object], tell: Tell, agent: str) -> Answer:
    tell("begun\x1b")
    return ANSWERS.get(tool) or Answer(f"{tool} {json.dumps(given)} {agent}")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """A run directory with a door, of a longer name than a socket may have."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with open_door(folder, echo):
        yield folder


def test_a_door_answers_those_who_know_the_token(run: Path) -> None:
    heard: list[str] = []
    answer = ask(run, "evaluate", {"source": "x = 'ü'"}, heard.append, "me")
    assert answer == Answer('evaluate {"source": "x = \'\\u00fc\'"} me') and heard == ["begun\x1b"]
    assert ask(run, "read all", {}, heard.append, "\ud800").text == "read all {} ?"
    longest = {"source": "\U0001f600" * MOST_CHARACTERS}
    assert ask(run, "evaluate", longest, heard.append, "").kind == "done"
    assert "too long" in ask(run, "x", {"source": longest, "x": "\0" * 10**7}, print, "").text
    assert S_IMODE((run / "session").stat().st_mode) == 0o700
    (run / "session" / "token").write_text("a" * 43)
    assert ask(run, "list", {}, heard.append, "") == Answer("The token is wrong.", "refused")


@pytest.mark.parametrize(
    "sent", [b"\n", b"{}\n", b"[1]\n", b"\xff\n", b'{"token": 1}\n', b"x" * 99, b"[" * 200_000]
)
def test_no_request_no_answer(run: Path, sent: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with connected(run / "session" / "socket") as visitor:
        visitor.sendall(sent)
        visitor.shutdown(socket.SHUT_WR)
        assert b"two" not in visitor.makefile("rb").read()
    assert ask(run, "list", {}, print, "").kind == "done"
    assert "Traceback" not in capfd.readouterr().err


def test_no_candidate_reads_the_token(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("CUDA_HOME", str(run))
    with pytest.raises(UsageError, match="choose a folder elsewhere"), open_door(run, echo):
        pass
    (tmp_path / "session").symlink_to(run)
    with pytest.raises(UsageError, match="is a link"), open_door(tmp_path, echo):
        pass
    (run / "session" / "token").unlink()
    (run / "session" / "token").mkdir()
    monkeypatch.delenv("CUDA_HOME")
    with pytest.raises(UsageError, match="session can't be used"), open_door(run, echo):
        pass


def test_who_has_gone_is_answered_all_the_same(tmp_path: Path) -> None:
    go_on, ended = threading.Event(), threading.Event()

    def slow(tool: str, given: Mapping[str, object], tell: Tell, agent: str) -> Answer:
        tell("begun")
        assert go_on.wait(60)
        ended.set()
        return Answer("done")

    with open_door(tmp_path, slow):
        token = (tmp_path / "session" / "token").read_text()
        asked = {"token": token, "tool": "list", "arguments": {}, "agent": ""}
        with connected(tmp_path / "session" / "socket") as visitor:
            visitor.sendall(json.dumps(asked).encode() + b"\n")
            assert b"begun" in visitor.recv(100)
        go_on.set()
        assert ended.wait(60)


def test_where_no_session_is_open_the_remedy_is_named(tmp_path: Path) -> None:
    def gone(*_: object) -> Answer:
        raise OSError

    with open_door(tmp_path, gone):
        assert is_open(tmp_path)
        with pytest.raises(InfrastructureError, match="nothing is charged twice"):
            ask(tmp_path, "list", {}, print, "")
    assert not is_open(tmp_path)
    with pytest.raises(UsageError, match="begin it with kernel-refinery mcp"):
        ask(tmp_path, "list", {}, print, "")
    assert "no session is open" in refused("agent.tool", "list", "--session", tmp_path)


def test_commands_print_answers_and_exit_by_their_kind(run: Path) -> None:
    kernel = run / "kernel.py"
    kernel.write_text("x = 1\n")
    asked = ("--problem", "first", "--prompt-tokens", 5)
    done = command("agent.tool", "evaluate", kernel, *asked, KERNEL_REFINERY_SESSION=str(run))
    given = {"prompt_tokens": 5, "problem": "first", "source": "x = 1\n"}
    assert done.stdout == f"evaluate {json.dumps(given)} commands\n"
    assert (done.returncode, done.stderr) == (0, "begun\N{SYMBOL FOR ESCAPE}\n")
    said = {name: command("agent.tool", name, "--session", run) for name in ANSWERS}
    assert [each.returncode for each in said.values()] == [0, 1, 2]
    assert said["list"].stdout == "two\N{SYMBOL FOR ESCAPE}[2J\ufffd\ufffd\ufffd\n"
    for no_file in (run, "/dev/zero"):
        assert "can't read" in refused("agent.tool", "evaluate", no_file, "--session", run)
