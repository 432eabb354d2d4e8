from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.collect.own_collectors import collect_own, target_zygote
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import measure_ceilings
from evaluator.judge.workers.zygote import Zygote
from evaluator.walls.probe import JUDGE_OUT_OF_REACH
from tests.evaluator.collect.target_requests import REFERENCE, request


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_API_KEY", "hunter2")
        with closing(target_zygote()) as zygote:
            yield zygote


@pytest.mark.thorough
def test_a_candidate_reaches_neither_homes_nor_keys(tmp_path: Path, zygote: Zygote) -> None:
    """Nor what the candidate before it has left, in a process forked from the same one."""
    source = (
        "import os, resource, torch\nfrom pathlib import Path\n"
        "assert resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY\n"
        "assert 'SOME_API_KEY' not in os.environ\n"
        "assert not Path('left').exists() and not hasattr(os, 'left')\n"
        "Path('left').touch()\nos.left = True\n"
        "for place in (Path('/etc'), Path('/usr'), Path('/')):\n"
        "    try:\n        (place / 'refinery-was-here').write_text('x')\n"
        "    except OSError:\n        pass\n"
        "    else:\n        raise SystemExit(f'{place} can be written')\n"
        "try:\n    os.chmod(os.__file__, 0o644)\n"
        "except OSError as error:\n    assert error.errno == 30, error\n"
        "else:\n    raise SystemExit('modes can be changed')\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    )
    request(source, tmp_path)
    for _ in range(2):
        collected = collect_own(tmp_path, "cpu", device="cpu", timeout_s=90, zygote=zygote)
    walls = {"read_only", "no_new_privs", "separate_builder", "memory_limit", JUDGE_OUT_OF_REACH}
    assert walls <= set(collected.isolation)
    assert collected.cpu is not None
    assert collected.cpu.threads == 1
    assert any(operator.name == "aten::add" for operator in collected.cpu.operators)


@pytest.mark.slow
def test_a_confined_target_finds_the_ceilings_that_the_judge_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody but its owner may enter it, as a user's cache folder.
    tmp_path.chmod(0o700)
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path))
    monkeypatch.setattr(ceilings, "_SECONDS", 0.0)
    measure_ceilings("cpu", threads=1)
    (stored,) = (tmp_path / "ceilings").iterdir()
    known = json.loads(stored.read_text()) | {"read_bytes_s": 7.0, "write_bytes_s": 7.0}
    stored.write_text(json.dumps(known))
    request(REFERENCE.replace("class Model(", "class ModelNew("), tmp_path)
    collected = collect_own(tmp_path, "cpu", device="cpu", timeout_s=90)
    assert collected.work is not None
    assert collected.work.bytes_per_s == pytest.approx(7.0)


def test_what_it_leaves_behind_is_not_waited_for(tmp_path: Path, zygote: Zygote) -> None:
    # It holds the line to the broker.
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(300)\n"
    source += REFERENCE.replace("class Model(", "class ModelNew(")
    request(source, tmp_path)
    assert collect_own(tmp_path, "shares", device="cpu", timeout_s=60, zygote=zygote).calls
