"""Row kernels in Triton: one program a row, which stays in registers."""

from tests.advice.good.claim import Claim
from tests.advice.good.good_kernel import GoodKernel
from tests.advice.good.label import Label
from tests.advice.good.streaming import STREAMS
from tests.task import task

_LABEL = Label(
    limited_by="The device's memory: one read and one write a value, coalesced and 16 bytes a "
    "lane. Triton reduces within warps by shuffles and keeps the row in registers.",
    right_advice="Stop: only the number of warps and of rows a program are left to try.",
    must_not=STREAMS - {Claim.FEWER_BARRIERS, Claim.LESS_ARITHMETIC}
    | {Claim.USE_SHUFFLES, Claim.SHORTEN_DEPENDENCIES, Claim.AVOID_DIVERGENCE},
    should=(Claim.STOP,),
)

TRITON_SOFTMAX = GoodKernel(
    name="triton_softmax",
    reference=task("return torch.softmax(x * 0.125, dim=1)", x="torch.randn(32768, 2048)"),
    source="""import torch
import triton
import triton.language as tl


@triton.jit
def softmax_k(x, y, WIDTH: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    start = tl.program_id(0).to(tl.int64) * WIDTH
    v = tl.load(x + start + columns) * 0.125
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + start + columns, e / tl.sum(e, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_k[(x.shape[0],)](x, y, WIDTH=x.shape[1], num_warps=4)
        return y
""",
    label=_LABEL,
)

TRITON_RMS_NORM = GoodKernel(
    name="triton_rms_norm",
    reference=task(
        "s = x + r\nreturn s * torch.rsqrt(s.pow(2).mean(1, keepdim=True) + 1e-6) * w",
        x="torch.randn(16384, 4096)",
        r="torch.randn(16384, 4096)",
        w="torch.randn(4096)",
    ),
    source="""import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_k(x, r, w, y, WIDTH: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    start = tl.program_id(0).to(tl.int64) * WIDTH
    s = tl.load(x + start + columns) + tl.load(r + start + columns)
    weight = tl.load(w + columns)
    scale = tl.rsqrt(tl.sum(s * s, axis=0) / WIDTH + 1e-6)
    tl.store(y + start + columns, s * scale * weight)


class ModelNew(torch.nn.Module):
    def forward(self, x, r, w):
        y = torch.empty_like(x)
        add_rms_norm_k[(x.shape[0],)](x, r, w, y, WIDTH=x.shape[1], num_warps=8)
        return y
""",
    label=_LABEL,
)

KERNELS = (TRITON_SOFTMAX, TRITON_RMS_NORM)
