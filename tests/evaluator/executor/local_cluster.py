"""A Ray cluster of several nodes on this machine, on loopback, to try what a lost node does.

`python -m tests.evaluator.executor.local_cluster FD FOLDER` ends with the process that started it;
`LocalCluster` is that process as seen from outside. Its nodes share the machine, so figures from it
say nothing about how fast a cluster is.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from evaluator.ipc.service import Service, respond
from evaluator.ipc.wire import Channel, ClosedError

_NODE = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


class LocalCluster:
    """A head that judges nothing, and nodes that do."""

    def __init__(self, process: Service, address: str) -> None:
        self._process = process
        self.address = address
        """HOST:PORT."""

    @property
    def pid(self) -> int:
        """Of the process that all nodes descend from."""
        assert self._process.pid is not None, "it runs until the context ends"
        return self._process.pid

    def join(self, num_cpus: int = 1, num_gpus: int = 0, packages: Path | None = None) -> None:
        """Add a node that says it has so much; it looks for Python packages in `packages` first."""
        node: dict[str, Any] = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        if packages is not None:
            node["env_vars"] = {"PYTHONPATH": str(packages)}
        self._process.ask(b"join " + json.dumps(node).encode())

    def lose(self) -> None:
        """Kill a node with all its processes, as a power cut would."""
        self._process.ask(b"lose")


@contextmanager
def local_cluster(nodes: int) -> Iterator[LocalCluster]:
    """A cluster with so many nodes of one CPU, and a token of its own, which this process's
    environment holds meanwhile."""
    settings = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray's word for a cluster of one host: it listens on loopback alone.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    with (
        tempfile.TemporaryDirectory(prefix="refinery-ray-") as folder,
        patch.dict(os.environ, settings),
    ):
        process = Service("tests.evaluator.executor.local_cluster", folder)
        try:
            cluster = LocalCluster(process, process.ask(b"address").decode())
            for _ in range(nodes):
                cluster.join()
            yield cluster
        finally:
            process.close()


def main(fd: int, folder: Path) -> None:
    """Start the head, serve until the other end is gone, and end every node."""
    os.environ["RAY_TMPDIR"] = str(folder)
    from ray.cluster_utils import Cluster

    place: dict[str, Any] = {"temp_dir": str(folder / "ray")}
    cluster = Cluster(initialize_head=True, head_node_args={**_NODE, **place, "num_cpus": 0})

    def answer(question: bytes) -> bytes:
        if question.startswith(b"join"):
            cluster.add_node(**_NODE, **place, **json.loads(question.removeprefix(b"join ")))
        elif question == b"lose":
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        return str(cluster.address).encode()

    channel = Channel(socket.socket(fileno=fd))
    try:
        # In this thread, as Ray sets signal handlers for each node.
        with suppress(ClosedError):
            while respond(channel, answer, channel.receive().payload):
                pass
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
