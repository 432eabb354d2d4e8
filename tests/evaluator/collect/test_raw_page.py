from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.nsight.ncu_metrics import QUANTITIES
from evaluator.collect.nsight.raw_page import parse_raw
from evaluator.errors import ProfilerError

DATA = Path(__file__).parents[2] / "data" / "ncu"
TIME = "gpu__time_duration.sum"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


def raw_page(*launches: dict[str, str], units: dict[str, str] | None = None) -> str:
    """A raw page with the noise that ncu and a program leave around and in it."""
    columns = list(
        dict.fromkeys(["ID", "Kernel Name", *(name for row in launches for name in row)])
    )
    units = {TIME: "ns"} | (units or {})

    def line(values: dict[str, str]) -> str:
        return ",".join(f'"{values.get(column, "")}"' for column in columns)

    header = line({column: column for column in columns})
    return "\n".join(
        [
            "==PROF== Connected to process 1 (/usr/bin/python3)",
            "what the program printed, with a comma",
            header,
            line(units),
            "==WARNING== Note: Running with unmodified GPU clocks.",
            *(
                line({"ID": str(n), "Kernel Name": "k(int)"} | row)
                for n, row in enumerate(launches)
            ),
            header,
            "==PROF== Disconnected from process 1",
        ]
    )


def test_a_real_export_of_an_h200() -> None:
    (kernel,) = parse_raw((DATA / "gelu_h200_raw.csv").read_text()).kernels
    assert (kernel.name, kernel.launches) == ("gelu_k", 1)
    assert kernel.time_us == pytest.approx(212.576)
    assert kernel.metrics["dram_pct"] == pytest.approx(50.59)
    assert kernel.metrics["sm_pct"] == pytest.approx(43.73)  # its busiest part: instructions
    assert kernel.metrics["sm_clock_hz"] == pytest.approx(1_965_171_279.92)
    assert kernel.metrics["grid"] == 262_144
    assert kernel.metrics["sm_count"] == 132
    # The driver's 1024 bytes are not the kernel's.
    assert kernel.metrics["shared_bytes"] == 0


def test_launches_are_grouped_and_weighted_by_time() -> None:
    page = raw_page(
        {"Kernel Name": "void k<float, (int)4>(T1 *)", TIME: "1,000", DRAM: "80",
         "dram__bytes_read.sum": "1,000", "launch__grid_size": "10"},
        {"Kernel Name": "at::native::fill<int>(int)", TIME: "5,000"},
        {"Kernel Name": "void k<float, (int)4>(T1 *)", TIME: "3,000", DRAM: "40",
         "dram__bytes_read.sum": "3,000", "launch__grid_size": "30"},
        {"Kernel Name": "void k<float, (int)4>(T1 *)", TIME: "4,000"},
        units={"dram__bytes_read.sum": "byte", DRAM: "%"},
    )  # fmt: skip
    k, fill = parse_raw(page).kernels
    assert (fill.name, fill.launches, fill.time_us) == ("at::native::fill", 1, 5.0)
    assert (k.name, k.launches, k.time_us) == ("k", 3, 8.0)
    assert k.metrics["dram_pct"] == pytest.approx(50.0)
    assert k.metrics["dram_read_bytes"] == 4000
    assert k.metrics["grid"] == 30
    assert fill.metrics["dram_pct"] is None
    assert fill.metrics["dram_read_bytes"] is None


def test_launches_that_took_no_time_weigh_the_same() -> None:
    (kernel,) = parse_raw(raw_page({TIME: "0", DRAM: "80"}, {TIME: "0", DRAM: "40"})).kernels
    assert kernel.metrics["dram_pct"] == pytest.approx(60.0)


def test_stalls_are_shares_of_the_samples() -> None:
    sampled = "smsp__pcsamp_warps_issue_stalled_"
    row = {TIME: "1", f"{sampled}barrier": "30", f"{sampled}selected": "10"}
    row["smsp__average_warp_latency_per_inst_issued.ratio"] = "8"
    metrics = parse_raw(raw_page(row)).kernels[0].metrics
    assert [metrics[f"stall_{name}"] for name in ("barrier", "selected", "tensor")] == [6, 2, 0]


def test_shared_memory_of_a_kernels_own() -> None:
    size = "launch__shared_mem_per_block"
    page = raw_page(
        {TIME: "1", f"{size}_static": "400", f"{size}_dynamic": "2,048",
         f"{size}_driver": "1,024", f"{size}_allocated": "3,584"},
    )  # fmt: skip
    assert parse_raw(page).kernels[0].metrics["shared_bytes"] == 2448


@pytest.mark.parametrize("value", ["n/a", "", "nan", "inf", "PolicySpread"])
def test_what_is_no_number_is_missing(value: str) -> None:
    trace = parse_raw(raw_page({TIME: "10", DRAM: value}))
    assert trace.kernels[0].metrics["dram_pct"] is None
    assert "dram_pct" in trace.missing
    assert "time_us" not in trace.missing


def test_the_second_name_is_used_where_the_first_has_no_value() -> None:
    first, second = QUANTITIES["tensor_pct"][1]
    rows = {TIME: "10", first: "n/a", second: "33"}, {TIME: "10", first: "35", second: "99"}
    assert parse_raw(raw_page(*rows)).kernels[0].metrics["tensor_pct"] == 34


HEADER = f'"ID","Kernel Name","{TIME}"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no table"),
        ("==PROF== Connected\n==WARNING== No kernels were profiled.\n", "no table"),
        (f'{HEADER}\n"","","ns"\n', "no kernel"),
        ('"ID","Kernel Name"\n"",""\n"0","k(int)"\n', "no duration"),
        (f'{HEADER}\n"","","ns"\n"0","f(int, int)","1","2"\n', "3 fields in line 3, saw 4"),
    ],
)
def test_what_is_no_table_of_kernels(text: str, message: str) -> None:
    with pytest.raises(ProfilerError, match=message) as caught:
        parse_raw(text)
    assert "\n" not in str(caught.value)


def test_a_row_that_breaks_off_lacks_the_rest() -> None:
    trace = parse_raw(f'{HEADER},"{DRAM}"\n"","","ns","%"\n"0","f(int, int)","2,000"\n')
    assert trace.kernels[0].time_us == 2.0
    assert "dram_pct" in trace.missing
