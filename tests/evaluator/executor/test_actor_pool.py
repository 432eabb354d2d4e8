"""What a pool bears: a cluster that it loses sight of, nodes of another version, busy judges.

The cluster, its nodes and actors are real; a node's copy of our packages may read otherwise.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.executor.builders import builders_for
from evaluator.executor.ray import RayExecutor
from evaluator.walls.environment import python_path
from tests.evaluator.executor.local_cluster import LocalCluster, local_cluster
from tests.waiting import once

pytestmark = pytest.mark.thorough

Altered = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster(nodes=1) as running:
        yield running


@pytest.fixture
def altered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Altered:
    """Makes a copy of our packages in which the actors' module reads otherwise."""
    # Ray has its workers look where the driver was started before anything else.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def copy(old: str, new: str) -> Path:
        ours, folder = Path(python_path().split(os.pathsep)[0]), tmp_path / "packages"
        folder.mkdir()
        (folder / "problems").symlink_to(ours / "problems")
        shutil.copytree(ours / "evaluator", folder / "evaluator")
        file = folder / "evaluator" / "executor" / "ray_judge.py"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        return folder

    return copy


def pool_at_work(case: str, cluster: LocalCluster) -> tuple[list[str], str]:
    """What the program says and complains of that has a pool of its own."""
    module = "tests.evaluator.executor.actor_pool_at_work"
    done = subprocess.run(
        [sys.executable, "-m", module, cluster.address, case],
        env=os.environ | {"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.slow
def test_a_pool_that_loses_sight_of_the_cluster_looks_again(cluster: LocalCluster) -> None:
    told, complaints = pool_at_work("loses_sight", cluster)
    assert told == ["done"]
    assert complaints.count("the cluster can't be looked over: ") == 1


def test_a_judge_is_given_as_many_candidates_as_keep_it_busy(
    cluster: LocalCluster, altered: Altered
) -> None:
    """On a node that only says that it has a GPU, of which nobody asks anything."""
    asked = "describe(self._device).name, hardware_lines(self._device)"
    cluster.join(num_cpus=0, num_gpus=1, packages=altered(asked, '"stand-in", []'))
    told, _ = pool_at_work("lends", cluster)
    assert told == [f"width {builders_for(1) + 2}", "done"]


@pytest.mark.slow
def test_a_node_with_another_version_of_this_program_is_left_and_told_once(
    cluster: LocalCluster, altered: Altered
) -> None:
    with RayExecutor("cpu", cluster.address) as executor:

        def told() -> str:
            executor._driver._log.seek(0)
            return executor._driver._log.read().decode()

        cluster.join(packages=altered("device_name", "name_of_device"))
        once(lambda: "name_of_device" in told(), why=told)
        # And who is well is welcome all the same.
        cluster.join()
        once(lambda: executor.judges == 2, why=told)
        assert told().count("no judge on node ") == 1
