"""The process that speaks with a Ray cluster: `python -m evaluator.executor.ray_driver ...`.

A process of its own, so that what Ray prints, catches, waits for and ends (a driver whose cluster
is gone is ended by Ray) stays out of the agent's.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from typing import TYPE_CHECKING

from evaluator.errors import ClusterError, DeviceError, JudgeDiedError
from evaluator.executor.ray_judge import Answer
from evaluator.ipc.switchboard import serve_lines

if TYPE_CHECKING:
    from evaluator.executor.actor_pool import ActorPool

ATTEMPTS = 3
"""Judges that may be lost over one candidate before that is reported instead of a verdict."""
_OBJECTS_BYTES = 80 * 2**20
"""Of a cluster of our own: sources and verdicts are all that travels."""
_LAST_CHARACTERS = 300
_TOKEN = (
    "the cluster's token is needed: put its ~/.ray/auth_token where this machine has it, or set"
    " RAY_AUTH_TOKEN (RAY_AUTH_MODE=disabled is for a cluster without authentication)"
)


def main(fd: int, device: str, address: str, folder: str) -> None:
    """Serve until the other end is gone; with no `address` on a cluster of our own, in `folder`.

    A question is a line and a rest: `place`, `size`, `check` or `judge` with a request, or the
    module of a service and what it is asked. What kept us from the cluster is the answer to all.
    """
    _prepare(address)
    import ray

    try:
        try:
            _connect(address, folder)
            from evaluator.executor.actor_pool import ActorPool

            pool = ActorPool(device)
        except ClusterError as error:
            failure = error

            def refuse(question: bytes) -> bytes:
                raise failure

            serve_lines(fd, refuse)
            return

        def answer(question: bytes) -> bytes:
            task, _, rest = question.partition(b"\n")
            if task == b"place":
                return pool.place.model_dump_json().encode()
            if task == b"size":
                return str(pool.size).encode()
            return ask(pool, task.decode(), rest).encode()

        serve_lines(fd, answer)
    finally:
        ray.shutdown()
        # The asking process may have been killed.
        shutil.rmtree(folder, ignore_errors=True)


def ask(pool: ActorPool, task: str, question: bytes) -> str:
    """What one of the judges says; another is asked where one is lost over it.

    Raises the `InfrastructureError` that a judge met, `JudgeDiedError` once `ATTEMPTS` were lost.
    """
    import ray
    from ray.exceptions import RayError, RayTaskError

    from evaluator.executor.actor_pool import Judge

    tried: list[Judge] = []
    for _ in range(ATTEMPTS):
        with pool.lent(tried) as judge:
            tried.append(judge)
            try:
                answer = ray.get(judge.actor.ask.remote(task, question))
                return Answer.model_validate_json(answer).value()
            except (JudgeDiedError, DeviceError) as error:
                lost: Exception = error
            except RayTaskError:
                raise  # our own bug, which another judge has too
            except RayError as error:
                pool.evict(judge)
                lost = error
        print(f"asking another judge than number {judge.number}: {lost}", file=sys.stderr)
    raise JudgeDiedError(f"{ATTEMPTS} judges were lost over one question, the last: {_short(lost)}")


def _prepare(address: str) -> None:
    """What Ray reads when it is imported."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address:
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        # Seconds for which a refused token is tried again; something was seen to listen there.
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "5")
    else:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        # Ray's word for a cluster of one host. Only then is its address the loopback's, and only
        # where that is its address does it listen there alone.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def _connect(address: str, folder: str) -> None:
    import ray
    from ray.exceptions import AuthenticationError, RayError

    ours = {
        # Ray opens its folder and the sockets in it to all users; ours around it is closed.
        "_temp_dir": f"{folder}/ray",
        "include_dashboard": False,
        "object_store_memory": _OBJECTS_BYTES,
    }
    try:
        ray.init(
            address or "local",
            namespace="kernel-refinery",
            log_to_driver=False,
            **({} if address else ours),
        )
    except AuthenticationError:
        raise ClusterError(_TOKEN) from None
    except (RayError, OSError, RuntimeError, ValueError) as error:
        refused = "InvalidAuthToken" in str(error.__cause__)
        raise ClusterError(_TOKEN if refused else f"Ray says: {_short(error)}") from None


def _short(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_LAST_CHARACTERS]


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
