"""The measurement of the server in small: every answer is there, and the right one."""

import pytest

from experiments.bench.serving.serve import ServeFigures, measure_serve, told


@pytest.mark.slow
def test_a_short_load() -> None:
    figures = measure_serve("cpu", minutes=0.1, in_flight=[1, 4], timing_seconds=0.05)
    assert [load.in_flight for load in figures.loads] == [1, 4]
    for load in figures.loads:
        assert load.requests >= load.in_flight
        assert (load.lost, load.swapped) == (0, 0), load.wrong
        assert 0 < load.median_s <= load.p95_s <= load.seconds
        assert load.before.processes > 1 and load.before.memory_mib > 0
        assert load.after.processes == load.before.processes
    assert figures.left_behind == 0
    assert "swapped: 0" in "\n".join(told(figures))
    assert ServeFigures.model_validate_json(figures.model_dump_json()) == figures
