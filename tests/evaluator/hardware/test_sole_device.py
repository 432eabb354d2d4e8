"""What a judge sees of the GPUs beside its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.hardware import devices, nvml
from evaluator.hardware.devices import DeviceInfo, see_none, see_only
from evaluator.hardware.nvml import hidden_device_files


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[DeviceInfo]:
    found = [DeviceInfo("NVIDIA H200", "cuda", (9, 0), uuid=f"GPU-{index}") for index in range(4)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setattr(devices, "list_gpus", lambda: found)
    return found


def visible() -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


def test_the_one_that_is_seen_is_cuda_0(gpus: list[DeviceInfo]) -> None:
    assert see_only("cpu") == "cpu"
    assert visible() == "0,1,2,3"
    assert see_only("cuda:2") == "cuda:0"
    assert visible() == "GPU-2"
    see_none()
    assert visible() == ""
    del gpus[1:]
    assert see_only("cuda:0") == "cuda:0"
    assert visible() == "", "the only one is left as it is"


class Driver:
    """Three GPUs whose device files are numbered the other way round."""

    NVMLError = RuntimeError

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes) -> int:  # noqa: N802
        return int(uuid[-1:])

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:  # noqa: N802
        return 2 - handle


@pytest.mark.parametrize(
    ("seen", "hidden"),
    [("GPU-0", [0, 1]), ("GPU-1,GPU-2", [2]), ("0", []), ("MIG-0", []), ("", [])],
)
def test_the_files_of_others_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen: str, hidden: list[int]
) -> None:
    @contextmanager
    def driver() -> Iterator[Driver]:
        yield Driver()

    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(nvml, "_DEVICES", tmp_path)
    monkeypatch.setattr(nvml, "nvml_library", driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert hidden_device_files() == [tmp_path / f"nvidia{number}" for number in hidden]
