import json

import pytest
import torch
from torch import nn
from torch.nn import functional

from evaluator.hardware.published import Published
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import Ceilings, measure_ceilings
from evaluator.judge.bounds.speed_of_light import bounds
from evaluator.judge.bounds.work import Work, count_work
from evaluator.settings import Precision
from tests.evaluator.judge.correctness.calibration import randn


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def work(function, *inputs, **options):
    module = function if isinstance(function, nn.Module) else Function(function)
    return count_work(module, inputs, **options)


X = randn(64, 256)
IMAGE = randn(2, 8, 32, 32)
ALL = X.numel() * 4


def test_elementwise_moves_input_and_output_once():
    counted = work(torch.relu, X)
    assert counted.bytes_soft == 2 * ALL
    assert counted.bytes_read_hard == counted.bytes_written_hard == ALL
    assert counted.accumulation == 1
    chain = work(lambda x: torch.sigmoid(x * 2 + 1) * x, X)
    assert chain.bytes_soft == 2 * ALL
    assert chain.elementwise == 4 * X.numel()
    assert chain.operators == work(lambda x: torch.sigmoid(x.t() * 2 + 1) * x.t(), X).operators == 4
    assert chain.transcendental == X.numel()


def test_matmul_operations_by_arithmetic():
    w = randn(256, 128)
    flops = 2 * 64 * 256 * 128
    assert work(torch.mm, X, w).flops == {"float32": flops}
    assert work(torch.mm, X, w, precision=Precision.TF32).flops == {"tfloat32": flops}
    assert work(torch.mm, X.half(), w.half()).flops == {"float16": flops}
    assert work(torch.mm, X, w).accumulation == 256


def test_a_parameter_that_modules_share_is_read_once():
    tied = nn.Sequential(nn.Linear(256, 256, bias=False), nn.Linear(256, 256, bias=False))
    tied[1].weight = tied[0].weight
    assert work(tied, X).bytes_soft == 2 * ALL + 256 * 256 * 4


def test_parameters_count_in_the_soft_bound_only():
    layer = nn.Linear(256, 10)
    counted = work(layer, X)
    assert counted.bytes_soft == ALL + 256 * 10 * 4 + 10 * 4 + 64 * 10 * 4
    assert counted.bytes_read_hard == ALL
    unused = nn.Module()
    unused.big = nn.Parameter(randn(1000))
    unused.forward = torch.relu
    assert work(unused, X).bytes_soft == 2 * ALL


@pytest.mark.parametrize(
    ("module", "held"),
    [
        # Weight, bias, running mean and variance of 8 channels, and the count of batches (int64).
        (nn.BatchNorm2d(8), 4 * 8 * 4 + 8),
        (nn.BatchNorm2d(8).eval(), 4 * 8 * 4),
        (nn.BatchNorm2d(8, track_running_stats=False), 2 * 8 * 4),
        (nn.BatchNorm2d(8, affine=False, track_running_stats=False), 0),
    ],
)
def test_batch_norm_by_hand(module, held):
    """Two passes over the input, but the second may find it in a cache: it counts once."""
    image = IMAGE.numel() * 4
    counted = work(module, IMAGE)
    assert counted.bytes_soft == image + held + image
    assert counted.bytes_read_hard == counted.bytes_written_hard == image
    assert counted.elementwise - IMAGE.numel() in (0, 1, 2)  # and the count of batches
    assert counted.flops == {}


def test_the_module_and_the_inputs_stay_as_they_are():
    module = nn.BatchNorm2d(8)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    image = IMAGE.clone()
    work(module, image, probe=True)
    work(lambda x: x.relu_(), image)
    work(lambda x: x.relu_() * x.max().item(), image)
    assert torch.equal(image, IMAGE)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


HIGH = X > 1.0
TRIANGLE = torch.triu(randn(64, 64))
# What each input must be read of, at most, in bytes; the truth for an ideal kernel.
READS = {
    "unused input": (lambda x, y: x + 1, (X, randn(99)), ALL),
    "expanded input": (lambda x, y: x + y, (X, randn(256).expand(64, 256)), ALL + 1024),
    "slice of an input": (lambda x: x[:, :10] * 2, (X,), 64 * 10 * 4),
    "slice of a result": (lambda x: (x * 2)[:, :10], (X,), 64 * 10 * 4),
    "rows": (lambda x, i: x[i], (X, torch.tensor([3, 5])), 2 * 256 * 4 + 16),
    "gather": (lambda x, i: x.gather(1, i), (X, torch.zeros(64, 1).long()), 64 * 4 + 64 * 8),
    "triangle of a product": (lambda a, b: torch.tril(a @ b), (X, X.T), 2 * ALL - 512),
    "product of triangles": (torch.mm, (TRIANGLE, TRIANGLE), 4 * 64 * 65),
    "masked": (lambda x, m: torch.cumsum(x * m, 1), (X, HIGH), int(HIGH.sum()) * 4 + X.numel()),
    "masked with floats": (lambda x, m: x * m, (X, (X > 0).float()), ALL + int((X > 0).sum()) * 4),
    "one-hot product": (
        lambda i, t: functional.one_hot(i, 1000).float() @ t,
        (torch.tensor([4, 9]), randn(1000, 8)),
        2 * 8 * 4 + 16,
    ),
    "strided convolution": (nn.Conv2d(8, 4, 2, stride=4), (IMAGE,), IMAGE.numel() * 4 // 4),
    "strided dilated": (nn.Conv2d(8, 4, 2, stride=2, dilation=2), (IMAGE,), IMAGE.numel()),
    "pooling with gaps": (nn.MaxPool2d(1, 2), (IMAGE,), IMAGE.numel()),
    "pooling leaves a rest": (nn.AvgPool2d(5, 5), (IMAGE,), 2 * 8 * 30 * 30 * 4),
    "softmax of one": (lambda x: torch.softmax(x.reshape(-1, 1), 1), (X,), 0),
    "times zero": (lambda x: x * 0, (X,), 0),
    "overwritten": (lambda x: x.zero_() + 1, (X.clone(),), 0),
    "part overwritten": (lambda x: (x[:, :8].fill_(1), x + 0)[1], (X.clone(),), 64 * 248 * 4),
    "copied over": (lambda x, y: x.copy_(y) * 1, (X.clone(), X), ALL),
    "attention to the first keys": (
        lambda q, k: functional.scaled_dot_product_attention(q, k, k, is_causal=True),
        (randn(1, 1, 8, 16), randn(1, 1, 64, 16)),
        2 * 8 * 16 * 4,
    ),
    "where": (lambda x, y: torch.where(x > 0, x, y), (X, X.clone()), 2 * ALL),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_the_hard_count_never_exceeds_what_must_be_read(name):
    function, inputs, most = READS[name]
    counted = work(function, *inputs)
    assert counted.bytes_read_hard <= most
    assert counted.bytes_read_hard + counted.bytes_written_hard <= counted.bytes_soft + most


WHOLE = {
    "softmax": lambda x: torch.softmax(x, 1),
    "layer norm": nn.LayerNorm(256),
    "sum": torch.sum,
    "loss": lambda x: functional.mse_loss(x, x * 2 + 1),
    "residual around a slice": lambda x: x + functional.pad(x[:, :10] * 2, (0, 246)),
    "cumsum": lambda x: x.cumsum(1),
    "linear, then gelu": nn.Sequential(nn.Linear(256, 32), nn.GELU()),
    "arg max": lambda x: x.argmax(1),
    "half precision inside": lambda x: x.half() * 2,
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_needed_as_a_whole_counts_as_a_whole(name):
    assert work(WHOLE[name], X).bytes_read_hard == ALL


@pytest.mark.parametrize(
    "module",
    [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(8), nn.GroupNorm(4, 8), nn.MaxPool2d(2)],
)
def test_images_that_are_needed_as_a_whole(module):
    assert work(module, IMAGE).bytes_read_hard == IMAGE.numel() * 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - x,
        lambda x: torch.softmax(x, 1).sum(1),
        lambda x: (x - x.amax(1)[:, None]).amax(1),
    ],
)
def test_probing_finds_what_cancels(function):
    assert work(function, X, probe=True).bytes_read_hard == 0


def test_probing_keeps_what_matters():
    for function in (torch.relu, nn.LayerNorm(256), lambda x: x.mean()):
        assert work(function, X, probe=True).bytes_read_hard == ALL
    two = work(lambda x, y: x + y - y, X, randn(64, 256, seed=3), probe=True)
    assert two.bytes_read_hard == ALL


ACCUMULATION = {
    "sum": (torch.sum, (X,), 64 * 256),
    "row sum": (lambda x: x.sum(1), (X,), 256),
    "sum of sums": (lambda x: (x.sum(1) * 2).mean(), (X,), 64 * 256),
    "softmax": (lambda x: torch.softmax(x, 0), (X,), 64),
    "cumsum": (lambda x: x.cumsum(1), (X,), 256),
    "layer norm": (nn.LayerNorm(256), (X,), 256),
    "group norm": (nn.GroupNorm(4, 8), (IMAGE,), 2 * 32 * 32),
    "rms norm": (nn.RMSNorm(256), (X,), 256),
    "batch norm": (nn.BatchNorm2d(8), (IMAGE,), 2 * 32 * 32),
    "batch norm of rows": (nn.BatchNorm1d(256), (X,), 64),
    "batch norm without running statistics": (
        nn.BatchNorm2d(8, track_running_stats=False).eval(),
        (IMAGE,),
        2 * 32 * 32,
    ),
    "batch norm in eval": (nn.BatchNorm2d(8).eval(), (IMAGE,), 1),
    "convolution, then batch norm in eval": (
        nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16)).eval(),
        (IMAGE,),
        72,
    ),
    "instance norm": (nn.InstanceNorm2d(8), (IMAGE,), 32 * 32),
    "convolution": (nn.Conv2d(8, 16, 3), (IMAGE,), 72),
    "linear": (nn.Linear(256, 3), (X,), 256),
    "maximum": (lambda x: x.max(), (X,), 1),
    "average pool": (nn.AvgPool2d(4), (IMAGE,), 16),
}


@pytest.mark.parametrize("name", ACCUMULATION)
def test_the_longest_sum(name):
    function, inputs, length = ACCUMULATION[name]
    assert work(function, *inputs).accumulation == length


def test_a_way_that_depends_on_values_is_run_for_real():
    counted = work(lambda x: x * 2 if x.sum().item() > -1e9 else x, X)
    assert counted.bytes_read_hard == ALL
    assert counted.bytes_soft == 2 * ALL


def test_embedding_touches_only_its_rows():
    counted = work(nn.Embedding(1000, 64), torch.randint(0, 1000, (5,)))
    assert counted.bytes_soft == 5 * 8 + 2 * 5 * 64 * 4


def test_several_outputs_and_views():
    both = work(lambda x: (x * 2, (x * 2).sum(1)), X)
    assert both.bytes_written_hard == ALL + 64 * 4
    assert work(lambda x: x.reshape(-1), X).bytes_written_hard == 0
    assert work(lambda x: {"a": [x + 1]}, X).bytes_written_hard == ALL


PEAKS = Published("", "", 0, 1e12, {"float32": 10})
FAST = Ceilings(1e15, 1e15, {}, 0.1)
LARGE = Work(
    bytes_soft=3_000_000,
    bytes_read_hard=1_050_000,
    bytes_written_hard=2_000_000,
    flops={"float32": 2e8, "bfloat16": 1.0},
    bytes_out=2_000_000,
)


def test_bounds_from_published_peaks():
    found = bounds(LARGE, PEAKS, FAST, 1_950_000)
    assert found.floor_us == pytest.approx(1.1 / 1.05)
    assert found.bound_us == pytest.approx(20.0)
    assert bounds(LARGE, PEAKS, FAST, 10**9).floor_us == pytest.approx(1.0)


def test_bounds_from_measured_ceilings():
    slow = Ceilings(1e11, 0.5e11, {"float32": 1e14}, 5.0)
    found = bounds(LARGE, None, slow, 0)
    assert found.floor_us is None
    assert found.bound_us == pytest.approx((10.0 + 40.0) / 1.02)
    assert bounds(Work(1, 0, 0), None, slow, 0).bound_us == 5.0
    assert bounds(Work(1, 0, 0), PEAKS, slow, 0).floor_us is None


def test_a_rate_is_the_published_one_and_what_is_attainable_was_measured():
    products = Work(1, 0, 0, flops={"float32": 1e9, "float16": 1e9})
    measured = Ceilings(1e9, 1e9, {"float32": 0.5e13, "float16": 4e13}, 1.0)
    found = bounds(products, PEAKS, measured, 0)
    assert found.bound_us == pytest.approx(1e15 / 1e13 + 1e15 / 4.08e13)
    assert found.attainable_us == pytest.approx(1e15 / 0.5e13 + 1e15 / 4e13)
    copies = bounds(LARGE, Published("", "", 0, 1e12, {}), Ceilings(0.5e12, 0.25e12, {}, 0.1), 0)
    assert (copies.bytes_us, copies.attainable_us) == pytest.approx((3.0, 2.0 + 8.0))


def test_a_copy_is_half_read_and_half_written():
    ceilings = Ceilings(4e9, 2e9, {}, 1.0)
    assert ceilings.moving_s(4e9, 2e9) == pytest.approx(2.0)
    assert 2e9 / ceilings.bandwidth_bytes_s == pytest.approx(ceilings.moving_s(1e9, 1e9))


def test_operations_never_make_the_floor():
    endless = Work(1000, 1000, 0, flops={"float32": 1e20})
    assert bounds(endless, PEAKS, FAST, 0).floor_us == pytest.approx(1000 / 1.05e12 * 1e6)


@pytest.mark.thorough
def test_ceilings_are_measured_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path))
    monkeypatch.setattr(ceilings, "_SECONDS", 0.0)
    threads = torch.get_num_threads()
    first = measure_ceilings("cpu", threads=1)
    assert first.read_bytes_s > 0
    assert first.write_bytes_s > 0
    assert first.empty_call_us > 0
    assert {"float32", "float16", "bfloat16", "tfloat32"} <= set(first.flops)
    assert torch.get_num_threads() == threads
    (path,) = tmp_path.rglob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"empty_call_us": 42.0}))
    assert measure_ceilings("cpu", threads=1).empty_call_us == 42.0
    path.write_text("torn")
    assert measure_ceilings("cpu", threads=1).empty_call_us != 42.0


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "shapes", "least_share"),
    [(torch.relu, [(2**29,)], 0.7), (torch.mm, [(8192, 8192)] * 2, 0.6)],
    ids=["elementwise", "product"],
)
def test_libraries_come_near_the_bound_and_do_not_beat_it(function, shapes, least_share):
    from evaluator.hardware.devices import cache_bytes
    from evaluator.hardware.published import published

    inputs = [torch.rand(shape, device="cuda") for shape in shapes]
    function(*inputs)
    times_us = []
    for _ in range(9):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function(*inputs)
        stop.record()
        stop.synchronize()
        times_us.append(start.elapsed_time(stop) * 1e3)
    found = bounds(
        work(function, *inputs),
        published(torch.cuda.get_device_name()),
        measure_ceilings("cuda:0", 1),
        cache_bytes("cuda:0"),
    )
    assert found.floor_us is not None
    assert found.floor_us < found.bound_us <= min(times_us) <= found.bound_us / least_share


def test_probing_takes_integer_inputs():
    numbers = torch.randint(1, 9, (64, 256))
    assert work(lambda x: x.float() * 2, numbers, probe=True).bytes_read_hard == 64 * 256 * 8
    assert work(lambda x: x.float() - x.float(), numbers, probe=True).bytes_read_hard == 0
