"""What a candidate asks to be built while it is rehearsed, and what is made of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.builder.builder import Builder
from evaluator.errors import IsolationError
from evaluator.evaluation import Backend
from evaluator.hardware.devices import DeviceInfo, describe
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.builds.built_ahead import BuiltAhead
from evaluator.judge.builds.rehearsal import rehearse as rehearsed
from evaluator.judge.workers import conversation
from evaluator.judge.workers.process import WorkerLimits
from evaluator.judge.workers.zygote import Zygote
from tests.evaluator.made_requests import evaluation_request

H200 = DeviceInfo(
    name="NVIDIA H200",
    kind="cuda",
    compute_capability=(9, 0),
    sms=132,
    memory_bytes=140 * 2**30,
)
LIMITS = WorkerLimits(memory_bytes=8 * 2**30, cpu_seconds=60)


class Notebook(Builder):
    """A builder that notes what it is asked for, and builds nothing."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache, cuda_arch="9.0a")
        self.names: list[str] = []

    def build(
        self, request: BuildRequest, timeout_s: float | None = None, *, sanitize: bool = False
    ) -> BuildOutcome:
        self.names.append(request.name)
        return BuildOutcome(ok=False, library="", seconds=1.0, log=f"{request.name} not here\n")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    running = Zygote()
    yield running
    running.close()


@pytest.fixture
def builder(tmp_path: Path) -> Notebook:
    return Notebook(tmp_path)


def rehearse(
    zygote: Zygote, builder: Builder, source: str, device: DeviceInfo = H200, **settings: object
) -> BuiltAhead:
    request = evaluation_request(source, backend=Backend.CUDA, **({"device": "cuda:0"} | settings))
    return rehearsed(request, builder, device, zygote.fork(LIMITS))


HEAD = """
import torch
from torch.utils import cpp_extension

def build(name):
    try:
        cpp_extension.load_inline(name=name, cpp_sources="")
    except RuntimeError as error:
        assert "not here" in str(error)
"""


def candidate(at_import: str) -> str:
    return f"""{HEAD}
{at_import}

class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        build("later")
"""


def test_what_an_import_asks_for_is_built(zygote: Zygote, builder: Notebook) -> None:
    found = rehearse(zygote, builder, candidate("build('one')\nbuild('two')"))
    assert found == BuiltAhead(seconds=2.0, cached=False)
    assert builder.names == ["one", "two"]


@pytest.mark.parametrize("then", ["", "raise ValueError(features)"])
def test_what_a_constructor_asks_for_is_built_where_the_import_asks_for_nothing(
    zygote: Zygote, builder: Notebook, then: str
) -> None:
    source = candidate("") + f"        {then}\n"
    assert rehearse(zygote, builder, source) == BuiltAhead(seconds=1.0, cached=False)
    assert builder.names == ["later"]


def test_what_is_built_meanwhile_does_not_count_towards_the_limit_of_an_import(
    zygote: Zygote, tmp_path: Path
) -> None:
    class Deliberate(Notebook):
        def build(self, *args: Any, **settings: Any) -> BuildOutcome:
            time.sleep(0.7)
            return super().build(*args, **settings)

    builder = Deliberate(tmp_path)
    assert rehearse(
        zygote, builder, candidate("build('a')\nbuild('b')"), import_timeout_s=1.0
    ) == BuiltAhead(seconds=2.0, cached=False)


def test_no_build_gives_an_import_more_time(zygote: Zygote, builder: Notebook) -> None:
    asks = "import time\nwhile True:\n    time.sleep(0.4)\n    build('a')"
    refused = rehearse(zygote, builder, candidate(asks), import_timeout_s=1.0).refused
    assert refused is not None
    assert refused.reason == "import_timeout"
    assert "longer than 1 s" in refused.message
    assert refused.build is not None and refused.build.seconds == len(builder.names)


def test_a_worker_that_does_not_read_holds_nobody_up(
    zygote: Zygote, builder: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_READING_S", 0.5)
    asks = (
        "import gc\nfrom evaluator.ipc.wire import Channel, Kind\n"
        "from evaluator.ipc.build_request import BuildRequest\n"
        "channel = next(o for o in gc.get_objects() if isinstance(o, Channel))\n"
        "while True:\n"
        "    channel.send(Kind.BUILD, BuildRequest(name='k' * 2**21).encode())\n"
    )
    # The answer names it, and fits into no socket's buffer.
    rehearse(zygote, builder, asks)
    assert len(builder.names) == 1


ASKS = """
assert torch.cuda.is_available()
assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
assert torch.cuda.get_device_name() == torch.cuda.get_device_name(0) == "NVIDIA H200"
major, minor = torch.cuda.get_device_capability("cuda:0")
properties = torch.cuda.get_device_properties(torch.device("cuda"))
assert (properties.major, properties.minor) == (major, minor)
assert properties.total_memory == 140 * 2**30 and properties.warp_size == 32
assert properties.shared_memory_per_block_optin == 227 * 1024
assert not hasattr(properties, "L2_cache_size")
build(f"sm_{major}{minor}_{properties.multi_processor_count}")
"""


def test_a_candidate_may_ask_what_gpu_it_is_built_for(zygote: Zygote, builder: Notebook) -> None:
    rehearse(zygote, builder, candidate(ASKS))
    assert builder.names == ["sm_90_132"]


def test_the_gpu_is_only_spoken_of(zygote: Zygote, builder: Notebook) -> None:
    rehearse(zygote, builder, candidate("torch.zeros(1, device='cuda')\nbuild('there')"))
    assert builder.names == []


def test_where_there_is_no_gpu_nothing_is_said_of_one(zygote: Zygote, builder: Notebook) -> None:
    asks = "build(torch.cuda.get_device_name.__module__.replace('.', '_'))"
    rehearse(zygote, builder, candidate(asks), describe("cpu"))
    assert builder.names == ["torch_cuda"]


def test_strict_isolation_holds_for_a_rehearsal(zygote: Zygote, builder: Notebook) -> None:
    request = evaluation_request(
        candidate("build('a')"), backend=Backend.CUDA, device="cuda:0", isolation="strict"
    )
    worker = zygote.fork(LIMITS)
    worker.isolation = ("seccomp",)
    with pytest.raises(IsolationError, match="landlock"):
        rehearsed(request, builder, H200, worker)
    assert builder.names == []
