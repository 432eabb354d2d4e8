"""Judging on a real Ray cluster of two nodes on this machine, with its judges and nodes in danger.

Where only the retries are tried, a stand-in answers in the judge's place: the actors, the nodes
and what is lost of them are real.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from evaluator.errors import JudgeDiedError, UnusableReferenceError
from evaluator.evaluation import Status
from evaluator.executor import ray as ray_executor
from evaluator.executor.ray import RayExecutor
from evaluator.executor.ray_driver import ATTEMPTS
from evaluator.executor.ray_judge import Place
from evaluator.rival import CheckRequest
from evaluator.settings import Settings
from problems.errors import UsageError
from tests.evaluator.executor.local_cluster import LocalCluster, local_cluster
from tests.evaluator.executor.test_local import request
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS
from tests.evaluator.processes import descendants, still_running
from tests.waiting import once

pytestmark = pytest.mark.thorough

JUDGE = "tests.evaluator.service_at_hand"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster(nodes=2) as running:
        yield running
        mine = descendants(os.getpid())
    assert not still_running(mine - descendants(os.getpid()))


@pytest.fixture(scope="module")
def executor(cluster: LocalCluster) -> Iterator[RayExecutor]:
    with RayExecutor("cpu", cluster.address) as running:
        yield running


def begun(diary: Path, count: int) -> list[list[int]]:
    """The first `count` lines of a diary, once they are there: pids of service and actor."""

    def lines() -> list[str]:
        found = diary.read_text().splitlines() if diary.exists() else []
        return found if len(found) >= count else []

    return [list(map(int, line.split())) for line in once(lines)]


def test_a_problem_is_checked_at_a_judge_of_the_cluster(executor: RayExecutor) -> None:
    good = CheckRequest(problem_id="test", reference=SCALE_AND_BIAS, settings=Settings())
    assert executor.check(good).measured_at
    broken = SCALE_AND_BIAS.replace("torch.relu(", "torch.no_such_function(")
    with pytest.raises(UnusableReferenceError, match="no_such_function"):
        executor.check(good.model_copy(update={"reference": broken}))


def test_the_judges_of_both_nodes_say_what_a_judge_here_would(executor: RayExecutor) -> None:
    once(lambda: executor.judges == 2)
    sources = [HONEST, HONEST.replace("* 2.0", "* 2.5"), "x = ("]
    with ThreadPoolExecutor(len(sources)) as pool:
        verdicts = list(pool.map(lambda source: executor.evaluate(request(source)), sources))
    assert [(verdict.status, verdict.reason) for verdict in verdicts] == [
        (Status.CORRECT, ""),
        (Status.INCORRECT, "wrong_values"),
        (Status.RUNTIME_ERROR, "syntax_error"),
    ]
    assert {verdict.device for verdict in verdicts} == {executor.place.device_name}
    assert "ray" not in sys.modules, "Ray stays out of the agent's process"


def test_what_another_judge_would_say_as_well_is_told_at_once(
    executor: RayExecutor, tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    with pytest.raises(UnusableReferenceError, match=r"^it can't be run\nanywhere$"):
        executor.ask(JUDGE, f"refuse {diary}".encode())
    assert len(begun(diary, 1)) == 1


def test_a_question_that_kills_every_judge_is_given_up(
    executor: RayExecutor, tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    told = rf"^{ATTEMPTS} judges were lost over one question, the last: {JUDGE} ended \(code -9"
    with pytest.raises(JudgeDiedError, match=told):
        executor.ask(JUDGE, f"die {diary}".encode())
    lost = begun(diary, ATTEMPTS)
    assert len(lost) == ATTEMPTS
    assert lost[0][1] != lost[1][1], "the second attempt is made elsewhere"


def test_a_lost_node_loses_no_question_and_a_new_one_judges(
    executor: RayExecutor, cluster: LocalCluster, tmp_path: Path
) -> None:
    once(lambda: executor.judges == 2)
    diary = tmp_path / "diary"
    with ThreadPoolExecutor(2) as pool:
        asked = f"sleep 4 {diary}".encode()
        answers = [pool.submit(executor.ask, JUDGE, asked) for _ in range(2)]
        services = {line[0] for line in begun(diary, 2)}
        cluster.lose()
        assert [answer.result(60) for answer in answers] == [asked, asked]
    assert len(begun(diary, 3)) == 3, "only the question on the lost node is asked again"
    assert executor.judges == 1
    assert len(services - still_running(services, patience_s=0.0)) == 1, "its processes are gone"
    cluster.join()
    once(lambda: executor.judges == 2)


def test_a_cluster_without_what_is_asked_for_is_refused_in_one_line(
    cluster: LocalCluster,
) -> None:
    with pytest.raises(UsageError, match=r"0 GPU in the cluster\): no node has a whole GPU free$"):
        RayExecutor("cuda:0", cluster.address)


def test_another_token_is_refused_in_one_line(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(UsageError, match=r"^--ray-address [\d.:]+: .*RAY_AUTH_TOKEN.*$"):
        RayExecutor("cpu", cluster.address)


@pytest.mark.slow
def test_a_cluster_of_our_own_listens_on_loopback_and_leaves_nothing_behind(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = descendants(os.getpid())
    with RayExecutor("cpu") as executor:
        assert executor.judges == 1
        started = descendants(os.getpid()) - before
        ports = [port for pid in started for port in psutil.Process(pid).net_connections("tcp")]
        listening = {port.laddr.ip for port in ports if port.status == psutil.CONN_LISTEN}
        folder = Path(executor._folder.name)
        assert folder.stat().st_mode & 0o077 == 0
    assert listening
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert not still_running(started)
    assert not folder.exists()


def test_an_address_where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match=rf"^--ray-address 127\.0\.0\.1:{port}: nothing answers"):
        RayExecutor("cpu", f"127.0.0.1:{port}")


def test_an_address_where_something_else_listens_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_executor, "CONNECT_S", 3.0)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(UsageError, match=rf"^--ray-address {address}: no cluster answered"):
            RayExecutor("cpu", address)


@pytest.mark.parametrize("address", ["ray://head:10001", "head", "head:", ":6379"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match=r"give HOST:PORT"):
        RayExecutor("cpu", address)


def test_without_ray_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install ray$"):
        RayExecutor("cpu")


def test_places_that_differ_are_named() -> None:
    here = Place(device_name="NVIDIA H200", hardware=(), packages={"torch": "2.13.0"})
    assert here.difference(here) == ""
    other = here.model_copy(update={"device_name": "NVIDIA L40S"})
    assert other.difference(here) == "NVIDIA L40S and NVIDIA H200"
    older = here.model_copy(update={"packages": {"torch": "2.9.0"}})
    assert "2.9.0" in older.difference(here)
