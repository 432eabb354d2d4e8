"""Judging on a Ray cluster: one judge for each whole GPU, or for each node's cores."""

from __future__ import annotations

import importlib.util
import socket
import tempfile
from contextlib import AbstractContextManager

from evaluator.errors import ClusterError, JudgeDiedError
from evaluator.evaluation import Backend, Evaluation, EvaluationRequest
from evaluator.executor.ray_judge import Place
from evaluator.ipc.switchboard import Switchboard
from evaluator.rival import CheckRequest, Rival
from problems.errors import UsageError

CONNECT_S = 120.0
"""How long it may take to start or reach a cluster and have its judges come up."""
_ANSWER_S = 5.0
_LOOPBACK = (
    "; one that listens only on loopback needs RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 here as well"
)


class RayExecutor(AbstractContextManager["RayExecutor"]):
    """Implements `Executor` with the judges of a cluster; each is a Ray actor, with processes of
    its own as on one machine.

    Several threads may call `evaluate`. A candidate whose judge or node is lost is given to
    another. Ray itself is met by a process of its own, never by this one.
    """

    def __init__(self, device: str, address: str | None = None) -> None:
        """`device` is `cpu` or `cuda:0`. `address` is HOST:PORT, or `auto` for the cluster that
        runs on this machine; None starts one here, on loopback, and ends it in `close`.

        Raises `UsageError` where Ray is missing or the address can't be used, else `ClusterError`.
        """
        refuse_unusable(address)
        self.device = device
        """As a judge of the cluster sees it."""
        self._folder = tempfile.TemporaryDirectory(prefix="refinery-ray-")
        self._driver = Switchboard(
            "evaluator.executor.ray_driver", device, address or "", self._folder.name
        )
        try:
            self.place = Place.model_validate_json(self._driver.ask(b"place\n", CONNECT_S))
        except TimeoutError:
            self.close()
            why = f"no cluster answered in {CONNECT_S:g} s" + (_LOOPBACK if address else "")
            raise _refused(address, why) from None
        except (ClusterError, JudgeDiedError) as error:
            self.close()
            raise _refused(address, str(error)) from None
        except BaseException:
            self.close()
            raise

    @property
    def judges(self) -> int:
        return int(self._driver.ask(b"size\n"))

    def prepare(self, candidates: int = 1, backend: Backend = Backend.CUDA) -> None:
        """Nothing: the judges of a cluster start by themselves."""

    def build_ahead(self, request: EvaluationRequest) -> None:
        """Nothing: it is not known yet which machine will judge the candidate."""

    def check(self, request: CheckRequest) -> Rival:
        asked = request.on(self.device).model_dump_json()
        return Rival.model_validate_json(self.ask("check", asked.encode()))

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        asked = request.on(self.device).model_dump_json()
        return Evaluation.model_validate_json(self.ask("judge", asked.encode()))

    def ask(self, task: str, question: bytes) -> bytes:
        """Have a service (`task` is its module) answer beside one of the judges."""
        return self._driver.ask(task.encode() + b"\n" + question)

    def close(self) -> None:
        self._driver.close()
        self._folder.cleanup()

    def __exit__(self, *_: object) -> None:
        self.close()


def _refused(address: str | None, why: str) -> Exception:
    return UsageError(f"--ray-address {address}: {why}") if address else ClusterError(why)


def refuse_unusable(address: str | None) -> None:
    """Raise `UsageError` where Ray is not installed, or nothing listens: it would try for long."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("--executor ray needs Ray: pip install ray")
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in address:
        raise UsageError(
            f"--ray-address {address}: give HOST:PORT of the cluster that this machine is part of,"
            " or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise UsageError(
            f"--ray-address {address}: nothing answers there ({error}); docs/serve.md says how to"
            " start a cluster"
        ) from None
