"""The measurement of building ahead, in small."""

import pytest

from evaluator.evaluation import Status
from experiments.bench.loop.streaming import StreamingFigures, measure_streaming, told


@pytest.mark.slow
def test_two_pairs_on_the_cpu() -> None:
    figures = measure_streaming("cpu", tokens_per_second=[200.0], pairs=2, timing_seconds=0.1)
    (found,) = figures.rates
    assert len(found.pairs) == 2
    for pair in found.pairs:
        assert pair.ahead.status == pair.afterwards.status == Status.CORRECT
        for turn in (pair.ahead, pair.afterwards):
            assert turn.whole > turn.verdict > turn.build
            assert turn.whole > pair.tokens / 200
        assert pair.ahead.build < pair.afterwards.build, "it was found in the cache"
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert "built ahead" in "\n".join(told(figures))
    assert StreamingFigures.model_validate_json(figures.model_dump_json()) == figures
