"""What a judge sees of the GPUs beside its own."""

import os

import pytest

from evaluator.hardware import sole_device
from evaluator.hardware.devices import DeviceInfo
from evaluator.hardware.sole_device import see_none, see_only


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[DeviceInfo]:
    found = [DeviceInfo("NVIDIA H200", "cuda", (9, 0), uuid=f"GPU-{index}") for index in range(4)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setattr(sole_device, "list_gpus", lambda: found)
    return found


def visible() -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.usefixtures("gpus")
def test_one_of_several_is_cuda_0() -> None:
    assert see_only("cuda:2") == "cuda:0"
    assert visible() == "GPU-2"


def test_the_only_one_is_left_as_it_is(gpus: list[DeviceInfo]) -> None:
    del gpus[1:]
    assert see_only("cuda:0") == "cuda:0"
    assert visible() == "0,1,2,3"


@pytest.mark.usefixtures("gpus")
def test_a_cpu_needs_nothing() -> None:
    assert see_only("cpu") == "cpu"
    assert visible() == "0,1,2,3"


@pytest.mark.usefixtures("gpus")
def test_none() -> None:
    see_none()
    assert visible() == ""
