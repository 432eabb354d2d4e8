"""44 good kernels, profiled on an H100, are not advised what would be wrong for them.

25 were written for this, 19 are published ones. What limits each, and what it must not be advised,
was written by readers of the kernels before they had seen the rules (`good_labels.jsonl`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.advice.measured import DATA, Measured, stored
from tools.advice.rules import GPU_ADVICE
from tools.profiling.profile_report import Advice

LABELS = {
    label["case"]: label
    for label in map(json.loads, (DATA / "good_labels.jsonl").read_text().splitlines())
}
KERNELS = stored(DATA / "good.jsonl.gz")

CLAIMS: Mapping[str, frozenset[str]] = {
    "launch_bound": frozenset({"fewer_launches", "fuse"}),
    "unfused_kernels": frozenset({"fuse"}),
    "library_time": frozenset({"leave_the_library", "fuse"}),
    "too_few_blocks": frozenset({"more_blocks"}),
    "tail_wave": frozenset({"balance_work"}),
    "small_blocks": frozenset({"more_occupancy"}),
    "uneven_work": frozenset({"balance_work"}),
    "redundant_passes": frozenset({"move_fewer_bytes"}),
    "dram_bound": frozenset({"move_fewer_bytes"}),
    "dram_rate": frozenset({"more_loads_in_flight"}),
    "uncoalesced_loads": frozenset({"coalesce"}),
    "uncoalesced_stores": frozenset({"coalesce"}),
    "scalar_access": frozenset({"widen_accesses"}),
    "bank_conflicts": frozenset({"avoid_bank_conflicts"}),
    "register_spills": frozenset({"avoid_spills"}),
    "local_arrays": frozenset({"avoid_spills"}),
    "occupancy_registers": frozenset({"more_occupancy"}),
    "barrier_wait": frozenset({"fewer_barriers"}),
    "memory_latency": frozenset({"more_loads_in_flight"}),
    "shared_memory_queue": frozenset({"use_shuffles", "tile_in_registers"}),
    "no_tensor_cores": frozenset({"use_tensor_cores"}),
    "fp64_arithmetic": frozenset({"avoid_fp64"}),
    "fp32_matrix": frozenset({"tile_in_registers", "use_the_library"}),
}
"""By rule, what its advice asks of a writer, in the words of the labels."""
_OTHERWISE: Mapping[tuple[str, str], frozenset[str]] = {
    ("library_time", "Write this operator"): frozenset({"leave_the_library"}),
    ("library_time", "Do the rest"): frozenset({"fuse"}),
    ("fp32_matrix", "The tiles are large"): frozenset({"use_the_library"}),
    ("fp32_matrix", "Load the next tile"): frozenset({"more_loads_in_flight", "coalesce"}),
}
"""The same, where a rule's advice begins with other words."""


def claims(advice: Advice) -> frozenset[str]:
    for (rule, beginning), found in _OTHERWISE.items():
        if advice.rule == rule and advice.change.startswith(beginning):
            return found
    return CLAIMS[advice.rule]


def test_every_rule_has_its_claims_and_every_kernel_its_label() -> None:
    assert set(CLAIMS) == {rule.name for rule in GPU_ADVICE}
    assert {kernel.case for kernel in KERNELS} == set(LABELS)
    assert all(label["must_not"] and label["right_advice"] for label in LABELS.values())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.case)
def test_no_good_kernel_is_misled(kernel: Measured) -> None:
    advised = frozenset[str]().union(*map(claims, kernel.diagnosis.advice))
    assert not advised & set(LABELS[kernel.case]["must_not"])


def test_a_kernel_that_is_misled_is_found() -> None:
    """With a planted kernel whose loads are not coalesced."""
    planted = stored(DATA / "planted.jsonl.gz")
    row_sums = next(each for each in planted if (each.case, each.side) == ("row_sums", "planted"))
    assert "coalesce" in claims(row_sums.diagnosis.advice[0])
