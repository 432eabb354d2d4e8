"""The planted kernels, in the order in which they are run."""

from tests.advice import access, arithmetic, latency, launch, passes
from tests.advice.case import Case

CASES: tuple[Case, ...] = (
    *access.CASES, *launch.CASES, *latency.CASES, *arithmetic.CASES, *passes.CASES
)  # fmt: skip
