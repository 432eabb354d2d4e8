import platform
import subprocess
import sys

import pytest

from evaluator.hardware import devices
from evaluator.hardware.conditions import conditions
from evaluator.hardware.cores import usable_cores
from evaluator.hardware.devices import (
    DeviceInfo,
    _cpu_name,
    cache_bytes,
    describe,
    describe_gpu,
    hardware_lines,
)
from evaluator.hardware.published import TABLE, published
from problems.errors import UsageError


def test_importing_devices_imports_no_torch():
    code = (
        "import sys, evaluator.hardware.devices as d; d.describe_cpu(); d.list_gpus(); "
        "d.hardware_lines('cpu'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_cpu_at_hand():
    cpu = describe("cpu")
    assert cpu.kind == "cpu"
    assert cpu.name
    assert cpu.cores == usable_cores()
    assert cpu.memory_bytes > 2**28
    assert cache_bytes("cpu") >= 0


def test_a_gpu_that_is_not_there_is_a_usage_error():
    with pytest.raises(UsageError, match="no cuda:99: this machine has"):
        describe_gpu(99)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("h200", "H200"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("A100-80GB", "A100 80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)
def test_products_by_the_names_that_are_in_use(said, meant):
    assert published(said).name == meant


@pytest.mark.parametrize("said", ["AMD EPYC", "NVIDIA L40", "NVIDIA GeForce GTX 1080", ""])
def test_what_is_not_in_the_table_has_no_peaks(said):
    assert published(said) is None


def test_published_figures_are_plausible():
    assert published("NVIDIA H200").bandwidth_bytes_s == 4.8e12
    assert published("NVIDIA H200").flops["bfloat16"] == pytest.approx(990e12, rel=0.01)
    for product in TABLE:
        rates = product.flops
        assert 1e12 < rates["float32"] <= rates["float16"]
        assert published(product.name) is product


def test_what_a_prompt_says_of_a_gpu(monkeypatch):
    gpu = DeviceInfo("NVIDIA H200", "cuda", (9, 0), sms=132, memory_bytes=141 * 10**9)
    monkeypatch.setattr(devices, "list_gpus", lambda: [gpu])
    assert hardware_lines("cuda:0") == [
        "GPU: NVIDIA H200, compute capability 9.0, 132 SMs",
        "an SM: 228 KiB of shared memory (a block: at most 227 KiB, above 48 KiB on request), "
        "65536 registers, 2048 threads",
        "memory: 141 GB",
        "peak: 4800 GB/s; dense TFLOP/s: fp32 67, TF32 494.7, fp16 989.4, bf16 989.4",
    ]


@pytest.mark.gpu
def test_the_gpu_at_hand_agrees_with_torch():
    import torch

    gpu = describe_gpu(0)
    properties = torch.cuda.get_device_properties(0)
    assert gpu.name == properties.name
    assert gpu.compute_capability == (properties.major, properties.minor)
    assert gpu.sms == properties.multi_processor_count
    assert gpu.shared_memory == (
        properties.shared_memory_per_multiprocessor,
        properties.shared_memory_per_block_optin,
    )
    assert cache_bytes("cuda:0") == properties.L2_cache_size
    state = conditions("cuda:0")
    assert state["sm_clock_mhz"] > 0
    assert state["temperature_c"] > 0
    assert isinstance(state["throttled"], str)
    assert hardware_lines("cuda:0")


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("model name\t: AMD EPYC\n", "AMD EPYC (family 25, model 1)"),
        ("model name\t: AMD EPYC 9454P\n", "AMD EPYC 9454P"),
        ("", platform.machine()),
    ],
)
def test_a_name_without_a_number_is_told_apart(told: str, name: str) -> None:
    cpuinfo = f"cpu family\t: 25\nmodel\t\t: 1\n{told}cpu family\t: 25\nmodel\t\t: 1\n"
    assert _cpu_name(cpuinfo) == name
