"""What `--device` may say."""

import pytest

from evaluator.hardware import device_choice
from evaluator.hardware.device_choice import is_device_choice, resolve_device, resolve_devices
from evaluator.hardware.devices import DeviceInfo
from problems.errors import UsageError


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [DeviceInfo("NVIDIA H200", "cuda", (9, 0), uuid=f"GPU-{index}") for index in range(4)]
    monkeypatch.setattr(device_choice, "list_gpus", lambda: gpus)
    monkeypatch.setattr(device_choice, "_torch_build", lambda: "2.13.0")


@pytest.mark.parametrize("text", ["", "gpu", "0", "cuda:", "cuda:0,", "cuda:0,cpu", "cpu,cuda:0"])
def test_nothing_else(text: str) -> None:
    assert not is_device_choice(text)
    with pytest.raises(UsageError, match="give auto, all, cpu, cuda, cuda:N or cuda:N,M"):
        resolve_devices(text)


@pytest.mark.usefixtures("four")
def test_what_they_mean() -> None:
    assert resolve_devices("auto") == resolve_devices("cuda") == ("cuda:0",)
    assert resolve_devices("auto", prefer_gpu=False) == resolve_devices("cpu") == ("cpu",)
    assert resolve_devices("all") == ("cuda:0", "cuda:1", "cuda:2", "cuda:3")
    assert resolve_devices("cuda:3,1,cuda:0,1") == ("cuda:3", "cuda:1", "cuda:0")


@pytest.mark.usefixtures("four")
def test_where_one_is_wanted_several_are_refused() -> None:
    assert resolve_device("cuda:2") == "cuda:2"
    with pytest.raises(UsageError, match=r"this takes one device; use --device cuda:1$"):
        resolve_device("cuda:1,2")
