from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.collect.ncu import parse_query
from evaluator.collect.nsight.ncu_export import (
    base_name,
    number,
    parse_hints,
    parse_raw,
)
from evaluator.collect.nsight.ncu_metrics import QUANTITIES, names
from evaluator.errors import ProfilerError

DATA = Path(__file__).parents[2] / "data" / "ncu"
RAW = (DATA / "gelu_h200_raw.csv").read_text()
DETAILS = (DATA / "gelu_h200_details.csv").read_text()


def raw_page(*launches: dict[str, str], units: dict[str, str] | None = None) -> str:
    """A raw page with the noise that ncu and a program leave around it."""
    columns = ["ID", "Kernel Name", *dict.fromkeys(name for row in launches for name in row)]
    columns = list(dict.fromkeys(columns))
    units = units or {}

    def line(values: dict[str, str]) -> str:
        return ",".join(f'"{values.get(column, "")}"' for column in columns)

    return "\n".join(
        [
            "==PROF== Connected to process 1 (/usr/bin/python3)",
            "what the program printed, with a comma",
            "==WARNING== Note: Running with unmodified GPU clocks.",
            line({column: column for column in columns}),
            line(units),
            *(line({"ID": str(n)} | row) for n, row in enumerate(launches)),
            "==PROF== Disconnected from process 1",
        ]
    )


class TestRealExport:
    def test_raw(self) -> None:
        trace = parse_raw(RAW)
        (kernel,) = trace.kernels
        assert (kernel.name, kernel.launches) == ("gelu_k", 1)
        assert kernel.time_us == pytest.approx(212.576)
        assert kernel.metrics["dram_pct"] == pytest.approx(50.59)
        assert kernel.metrics["grid"] == 262_144
        assert kernel.metrics["waves"] == pytest.approx(248.24)
        assert kernel.metrics["sm_count"] == 132
        # The driver's 1024 bytes are not the kernel's.
        assert kernel.metrics["shared_bytes"] == 0

    def test_rules_with_their_estimates(self) -> None:
        hints = parse_hints(DETAILS)["gelu_k"]
        assert [hint.speedup_pct for hint in hints[:2]] == [27.1, 17.53]
        assert hints[0].rule == "AchievedOccupancy"
        assert {hint.kind for hint in hints} == {"OPT", "INF"}
        assert not any("https://" in hint.text for hint in hints)


class TestVariations:
    def test_launches_are_grouped_and_weighted_by_time(self) -> None:
        dram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
        page = raw_page(
            {"Kernel Name": "void k<float, (int)4>(T1 *)", "gpu__time_duration.sum": "1,000",
             dram: "80", "dram__bytes_read.sum": "1,000", "launch__grid_size": "10"},
            {"Kernel Name": "at::native::fill<int>(int)", "gpu__time_duration.sum": "5,000"},
            {"Kernel Name": "void k<float, (int)4>(T1 *)", "gpu__time_duration.sum": "3,000",
             dram: "40", "dram__bytes_read.sum": "3,000", "launch__grid_size": "30"},
            units={"gpu__time_duration.sum": "ns", "dram__bytes_read.sum": "byte", dram: "%"},
        )  # fmt: skip
        fill, k = parse_raw(page).kernels
        assert (fill.name, fill.launches, fill.time_us) == ("at::native::fill", 1, 5.0)
        assert (k.name, k.launches, k.time_us) == ("k", 2, 4.0)
        assert k.metrics["dram_pct"] == pytest.approx(50.0)
        assert k.metrics["dram_read_bytes"] == 4000
        assert k.metrics["grid"] == 30
        assert fill.metrics["dram_pct"] is None

    def test_shared_memory_of_a_kernels_own(self) -> None:
        size = "launch__shared_mem_per_block"
        page = raw_page(
            {"Kernel Name": "k(int)", "gpu__time_duration.sum": "1", f"{size}_static": "400",
             f"{size}_dynamic": "2,048", f"{size}_driver": "1,024", f"{size}_allocated": "3,584"},
            units={"gpu__time_duration.sum": "ns", f"{size}_dynamic": "byte/block"},
        )  # fmt: skip
        assert parse_raw(page).kernels[0].metrics["shared_bytes"] == 2448

    @pytest.mark.parametrize(
        ("unit", "value", "time_us"),
        [
            ("ns", "1,500", 1.5),
            ("nsecond", "1500", 1.5),
            ("us", "1.5", 1.5),
            ("usecond", "1.50", 1.5),
            ("ms", "0.0015", 1.5),
            ("second", "0.0000015", 1.5),
        ],
    )
    def test_units_of_time(self, unit: str, value: str, time_us: float) -> None:
        page = raw_page(
            {"Kernel Name": "k(int)", "gpu__time_duration.sum": value},
            units={"gpu__time_duration.sum": unit},
        )
        assert parse_raw(page).kernels[0].time_us == pytest.approx(time_us)

    @pytest.mark.parametrize(
        ("text", "unit", "expected"),
        [
            ("1.5", "Mbyte", 1.5e6),
            ("2", "Gbyte", 2e9),
            ("2,434,543,484,802.89", "byte/s", 2434543484802.89),
            ("3.2", "Ghz", 3.2e9),
            ("12.5", "Kbyte/block", 12_500.0),
            ("99.9", "%", 99.9),
            ("n/a", "%", None),
            ("", "byte", None),
            ("nan", "", None),
            ("PolicySpread", "", None),
        ],
    )
    def test_numbers(self, text: str, unit: str, expected: float | None) -> None:
        assert number(text, unit) == (None if expected is None else pytest.approx(expected))

    def test_second_name_is_used_where_the_first_is_missing(self) -> None:
        page = raw_page(
            {
                "Kernel Name": "k(int)",
                "gpu__time_duration.sum": "10",
                "dram__throughput.avg.pct_of_peak_sustained_elapsed": "33",
            },
            units={"gpu__time_duration.sum": "ns"},
        )
        assert parse_raw(page).kernels[0].metrics["dram_pct"] == 33

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "==PROF== Connected\n==WARNING== No kernels were profiled.\n",
            '"ID","Kernel Name"\n"",""\n',
            '"ID","Kernel Name"\n"",""\n"0","k(int)"\n',
        ],
    )
    def test_no_kernel_is_an_error_of_the_profiler(self, text: str) -> None:
        with pytest.raises(ProfilerError):
            parse_raw(text)


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("gelu_k(const float *, float *, long)", "gelu_k"),
        ("void at::native::vectorized<(int)4, F<float>>(int, T2)", "at::native::vectorized"),
        ("(anonymous namespace)::softmax_k(const float *)", "softmax_k"),
        ("void unnamed>::reg<float, unnamed>::Log, long, 4>(T2 *)", "reg"),
        ("nvjet_tst_128x64_64x9_2x1_v_bz_TNT", "nvjet_tst_128x64_64x9_2x1_v_bz_TNT"),
    ],
)
def test_base_name(full: str, short: str) -> None:
    assert base_name(full) == short


class TestChoice:
    def test_what_the_chip_does_not_know_is_not_asked_for_and_told(self) -> None:
        known = parse_query(
            "Device NVIDIA H200 (GH100)\n"
            "gpu__time_duration   Counter  nanosecond  time\n"
            "dram__throughput     Throughput   %  of peak\n"
        )
        wanted, missing = names(known)
        assert "dram__throughput.avg.pct_of_peak_sustained_elapsed" in wanted
        assert not any(name.startswith("gpu__dram_throughput") for name in wanted)
        assert "launch__grid_size" in wanted
        assert "l2_pct" in missing
        assert "dram_pct" not in missing

    def test_one_name_is_enough_where_the_chip_lists_it(self) -> None:
        known = frozenset({"smsp__inst_executed_op_local_ld", "gpu__time_duration"})
        wanted, missing = names(known)
        assert "smsp__inst_executed_op_local_ld.sum" in wanted
        assert "smsp__sass_inst_executed_op_local_ld.sum" not in wanted
        # Counted by a patched kernel, and never listed: asked for, and n/a where it is not known.
        assert "smsp__sass_inst_executed_op_local_st.sum" in wanted
        assert "memory_l2_theoretical_sectors_global" in wanted
        assert not {"local_loads", "global_sectors", "time_us"} & set(missing)

    def test_without_an_answer_everything_is_asked_for(self) -> None:
        wanted, missing = names(None)
        assert missing == []
        every = [name for _, names in QUANTITIES.values() for name in names]
        # What ncu derives comes with its section; asked for by name it ends the profiling.
        assert sorted(wanted) == sorted(n for n in every if not n.startswith("derived__"))
        assert len(wanted) == len(set(wanted)) < len(every)


def test_a_row_with_more_values_than_columns_is_no_table() -> None:
    header = '"ID","Kernel Name","gpu__time_duration.sum"'
    with pytest.raises(ProfilerError, match="4 values in 3 columns"):
        parse_raw(f'{header}\n"","","ns"\n"0","f(int, int)","1","2"\n')


def test_a_row_that_breaks_off_lacks_the_rest() -> None:
    header = '"ID","Kernel Name","gpu__time_duration.sum","lts__throughput"'
    trace = parse_raw(f'{header}\n"","","ns","%"\n"0","f(int, int)","2,000"\n')
    assert trace.kernels[0].time_us == 2.0
