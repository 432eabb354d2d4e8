"""All kernels written for this set, in the order in which they are run."""

from tests.advice.good import columns, compute, library, products, rows, streaming, triton_rows
from tests.advice.good.good_kernel import GoodKernel

_GROUPS = (streaming, rows, columns, products, compute, library, triton_rows)

KERNELS: tuple[GoodKernel, ...] = tuple(kernel for group in _GROUPS for kernel in group.KERNELS)
