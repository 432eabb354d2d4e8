"""The planted kernels, in the order in which they are run: one of each fault, then the rest."""

from tests.advice import access, arithmetic, latency, launch, passes, pipelines, tiles
from tests.advice.case import Case

_ALL = (
    *access.CASES,
    *launch.CASES,
    *latency.CASES,
    *arithmetic.CASES,
    *passes.CASES,
    *pipelines.CASES,
    *tiles.CASES,
)
_firsts = {case.rules: case for case in reversed(_ALL)}

CASES: tuple[Case, ...] = (
    *(case for case in _ALL if _firsts[case.rules] is case),
    *(case for case in _ALL if _firsts[case.rules] is not case),
)
