from __future__ import annotations

import pytest

from evaluator.audit_record import Provenance, Shares
from evaluator.collect.collected import (
    CollectedKernel,
    CollectedOperator,
    KernelTrace,
    ProfiledCall,
)
from evaluator.collect.cpu_trace import own_namespaces
from evaluator.deep_audit.own_code import OwnCode
from evaluator.deep_audit.provenance import cpu_shares, gpu_shares, label_of, uses_reference
from tests.evaluator.made_requests import HONEST, SCALE_AND_BIAS

OWN = OwnCode(libraries=1, kernels=frozenset({"scale_kernel"}))
NONE = OwnCode()


def shares(own: float, library: float = 0.0, other: float = 0.0, **more: object) -> Shares:
    names = ("scale",) if own else ()
    return Shares.model_validate(
        {"own": own, "library": library, "other": other, "own_names": names} | more
    )


@pytest.mark.parametrize(
    ("told", "code", "fell_back", "label"),
    [
        (shares(0.95, 0.05), OWN, False, Provenance.CUSTOM),
        (shares(0.90, 0.10), OWN, False, Provenance.CUSTOM),
        (shares(0.89, 0.11), OWN, False, Provenance.MIXED),
        (shares(0.10, 0.90), OWN, False, Provenance.MIXED),
        (shares(0.09, 0.91), OWN, False, Provenance.LIBRARY),
        (shares(0.00, 1.00), OWN, False, Provenance.FALLBACK),
        (shares(0.00, 1.00), NONE, False, Provenance.LIBRARY),
        (shares(0.00, 1.00), NONE, True, Provenance.FALLBACK),
        (shares(0.02, 0.98), OWN, True, Provenance.FALLBACK),
        # A second try that worked, or a base class of which only the weights are used.
        (shares(0.95, 0.05), OWN, True, Provenance.CUSTOM),
        (shares(0.95, 0.05, imports=("cblas_sgemm",)), OWN, False, Provenance.MIXED),
        (shares(0.30, 0.10, 0.60), OWN, False, None),
        (shares(0.00, 0.00, 1.00), NONE, False, Provenance.LIBRARY),
    ],
)
def test_the_rule(told: Shares, code: OwnCode, fell_back: bool, label: Provenance | None) -> None:
    assert label_of(told, code, fell_back=fell_back) is label


def profiled(wall_us: float, own: dict[str, float], library: dict[str, float]) -> ProfiledCall:
    operators = [
        CollectedOperator(name=name, own=times is own, calls=1, time_us=time_us)
        for times in (own, library)
        for name, time_us in times.items()
    ]
    return ProfiledCall(wall_us=wall_us, operators=tuple(operators))


def test_operators_are_sorted_by_whose_they_are() -> None:
    others = {"aten::mm": 40.0, "aten::empty_like": 4.0, "mkldnn::conv": 10.0, "a range": 99.0}
    told = cpu_shares([profiled(374.0, {"scale": 60.0, "mine::op": 10.0}, others)], OWN)
    assert (told.own_names, told.library_names) == (
        ("scale", "mine::op"),
        ("aten::mm", "mkldnn::conv"),
    )
    # 200 us are Python's, and 4 made no difference.
    assert (told.own, told.library, told.other) == (70 / 170, 50 / 170, 50 / 170)


@pytest.mark.parametrize(
    ("source", "namespaces"),
    [
        ("TORCH_LIBRARY(mine, m) {} TORCH_LIBRARY_IMPL( mine, CPU, m) {}", {"mine"}),
        ("TORCH_LIBRARY_FRAGMENT(mine, m) {}", {"mine"}),
        (
            "TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {}\nload_inline(name='mine', x=1)",
            {"mine", "TORCH_EXTENSION_NAME"},
        ),
        (
            "TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {}\nload_inline('mine', text)",
            {"mine", "TORCH_EXTENSION_NAME"},
        ),
        ("TORCH_LIBRARY_IMPL(aten, CPU, m) {}", set()),
        ("load_inline(name='aten')", set()),
    ],
)
def test_operators_namespaces_are_told_from_the_source(source: str, namespaces: set[str]) -> None:
    assert own_namespaces(source) == namespaces


def test_the_median_call_counts_and_a_little_python_does_not() -> None:
    def call(own: float, wall: float) -> ProfiledCall:
        return profiled(wall, {"scale": own}, {"aten::add": 10.0, "aten::view": 5.0})

    # In most calls somebody else had the processor.
    busy = [call(190, 9000), call(190, 5000), call(190, 800), call(190, 4000), call(190, 900)]
    told = cpu_shares([call(190, 380), *busy, call(190, 390)], OWN)
    assert told.own == pytest.approx(0.95)
    assert told.other == 0.0
    assert (told.own_names, told.library_names) == (("scale",), ("aten::add",))
    slow = cpu_shares([call(190, 1405)], OWN)
    assert slow.other == pytest.approx(1000 / 1200)


def test_kernels_on_a_gpu_are_told_apart_by_name() -> None:
    trace = KernelTrace(
        kernels=(
            CollectedKernel(name="ampere_sgemm_128x64_nn", launches=1, time_us=75.0),
            CollectedKernel(name="scale_kernel", launches=2, time_us=25.0),
        )
    )
    told = gpu_shares(trace, OWN)
    assert (told.own, told.library) == (0.25, 0.75)
    assert told.library_names == ("ampere_sgemm_128x64_nn",)
    assert label_of(told, OWN, fell_back=False) is Provenance.MIXED


MODEL = SCALE_AND_BIAS.split("ROWS,")[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (MODEL + "class ModelNew(Model):\n    pass\n", True),
        (
            MODEL + "class ModelNew(Model):\n    def forward(self, x):\n"
            "        return super().forward(x)\n",
            True,
        ),
        (
            MODEL.replace("Model(", "Plain(") + "class ModelNew(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n        self.m = Plain(n)\n"
            "    def forward(self, x):\n        return self.m(x)\n",
            True,
        ),
        # The weights of the reference, and a kernel over them.
        (
            MODEL + "class ModelNew(Model):\n    def forward(self, x):\n"
            "        return kernel(x, self.scale, self.bias)\n",
            False,
        ),
        (HONEST, False),
        (MODEL + HONEST, False),
        ("def (", False),
    ],
)
def test_who_leaves_the_work_to_the_reference(source: str, expected: bool) -> None:
    assert uses_reference(source, SCALE_AND_BIAS) is expected
