"""All planted kernels."""

from tests.advice import access, arithmetic, latency, launch, passes, pipelines
from tests.advice.case import Case

CASES: tuple[Case, ...] = (
    *access.CASES,
    *launch.CASES,
    *latency.CASES,
    *arithmetic.CASES,
    *passes.CASES,
    *pipelines.CASES,
)
