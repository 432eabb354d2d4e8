"""What is known about ATen's operators: which use every element they get, and how long they sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

Reach = dict[int, float]
"""Input number -> share of that input of which every element reaches a tensor."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TRANSCENDENTAL = _names(
    "exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan tanh sigmoid gelu silu elu celu "
    "softplus mish erf erfc pow atan2 log_sigmoid_forward _softmax _log_softmax logsumexp "
    "logcumsumexp"
)
SUMS = _names("sum mean logsumexp prod nansum dot mse_loss smooth_l1_loss huber_loss")
"""A kernel may run one such reduction into the next, in one accumulator."""

_WHOLE = (TRANSCENDENTAL - _names("_softmax _log_softmax")) | _names(
    "abs neg relu relu6 leaky_relu selu hardtanh hardswish hardsigmoid square reciprocal clamp "
    "clamp_min clamp_max clone _to_copy softshrink hardshrink threshold add sub rsub maximum "
    "minimum copy alias lift_fresh sum mean amax amin max min argmax argmin norm cumsum cumprod "
    "linalg_vector_norm cat stack flip roll repeat mse_loss smooth_l1_loss huber_loss diag_embed "
    "sort _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d var std var_mean std_mean"
)
"""They use every element that they get."""
_PRODUCTS = _names("mul div mm bmm addmm baddbmm mv dot addmv vdot addcmul addcdiv")
"""Where one operand is zero, the other is not needed."""
_EXTREMES = _names(
    "max min amax amin argmax argmin max_pool2d_with_indices max_pool3d_with_indices "
    "adaptive_max_pool2d sort topk nll_loss_forward"
)
_BATCH_NORMS = _names(
    "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training _batch_norm_with_update _batch_norm_no_update "
    "cudnn_batch_norm miopen_batch_norm"
)
_NORMS = _BATCH_NORMS | _names("native_layer_norm native_group_norm _fused_rms_norm")
_POOLS = _names("avg_pool1d avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices")
_ATTENTION = _names(
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_attention_math"
)
GATHERS = {"embedding": 0, "index": 0, "index_select": 0, "gather": 0, "take": 0}
"""Operators that read only some rows or elements of the operand at this place."""


ONLY_WRITING = ("copy_", "fill_", "zero_", "normal_", "uniform_")
"""Operators that never read their first operand."""
READS_VALUES = frozenset({"_local_scalar_dense", "is_nonzero", "equal"})
"""Operators by which a module's Python code learns what its tensors hold."""
_ASSERTING = frozenset({"binary_cross_entropy", "multinomial", "bernoulli", "poisson"})


def reach(
    name: str,
    args: tuple[Any, ...],
    operands: Sequence[tuple[Reach, bool]],
) -> Reach | None:
    """Which inputs reach the result as a whole; None: nothing is known about the operator.

    `operands`: for each tensor operand its own reach, and whether it is free of structural zeros.
    """
    reaches = [reached for reached, _ in operands]
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    if plain == "copy" and name == "copy_":
        return union(reaches[1:])
    if plain in _WHOLE:
        return union(reaches)
    if plain in _PRODUCTS:
        if plain == "mul" and not isinstance(args[1], Tensor) and args[1] == 0:
            return {}
        if plain.startswith("add"):
            return union([reaches[0], _product(operands[1:])])
        return _product(operands)
    if plain in ("_softmax", "_log_softmax"):
        return union(reaches) if args[0].shape[args[1]] > 1 else {}
    if plain in _BATCH_NORMS and not _takes_batch_statistics(plain, args):
        return union(reaches)
    if plain in _NORMS:
        return union(reaches) if accumulation(name, args, [args[0]], []) > 1 else {}
    if plain == "constant_pad_nd":
        return union(reaches) if min(args[1]) >= 0 else {}
    if plain in _POOLS:
        return _windowed(reaches, args, pool=True)
    if plain in ("convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"):
        dense = all(free for _, free in operands[:2])
        return _windowed(reaches, args, pool=False) if dense else {}
    if plain in _ATTENTION:
        query, key = args[0], args[1]
        whole = len(operands) == 3 and key.shape[-2] <= query.shape[-2]
        return _product(operands) if whole else {}
    return None


def dense(name: str, operands: Sequence[bool]) -> bool:
    """Whether the result is free of structural zeros, given which tensor operands are."""
    if name == "copy_":
        return operands[1]
    if name in _NORMS:
        return operands[0]
    if "convolution" in name:
        return all(operands[:2])
    if name.rstrip("_") in ("addmm", "baddbmm", "addmv"):
        return all(operands[1:3])
    return all(operands)


def union(parts: Sequence[Reach]) -> Reach:
    """Of each input the largest share among these, and never more than all of it."""
    whole: Reach = {}
    for part in parts:
        for number, share in part.items():
            whole[number] = max(whole.get(number, 0.0), min(1.0, share))
    return whole


def _product(operands: Sequence[tuple[Reach, bool]]) -> Reach:
    """An operand counts only if all the others are free of structural zeros."""
    return union(
        [
            reached
            for position, (reached, _) in enumerate(operands)
            if all(dense for other, (_, dense) in enumerate(operands) if other != position)
        ]
    )


def _windowed(reaches: Sequence[Reach], args: tuple[Any, ...], *, pool: bool) -> Reach:
    """Convolution and pooling: all is used if the windows leave no gaps and nothing at the end."""
    data = args[0]
    if pool:
        kernel = list(args[1])
        stride = list(args[2]) if len(args) > 2 and args[2] else kernel
        padding = list(args[3]) if len(args) > 3 else [0]
        dilation = list(args[4]) if len(args) > 4 and isinstance(args[4], list | tuple) else [1]
    else:
        if len(args) > 6 and args[6]:
            return {}
        kernel = list(args[1].shape[2:])
        stride, padding, dilation = list(args[3]), list(args[4]), list(args[5])
    dims = len(kernel)
    sizes = data.shape[-dims:]
    stride, padding, dilation = (
        v * dims if len(v) == 1 else v for v in (stride, padding, dilation)
    )
    for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        extent = d * (k - 1) + 1
        gaps = s > k if d == 1 else s > 1
        left_over = (size + 2 * p - extent) % s - p
        if gaps or left_over > 0 or size < extent:
            return {}
    return union(reaches)


def _takes_batch_statistics(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a batch norm sums over the batch; in eval it scales and shifts each element."""
    flags = [value for value in args if isinstance(value, bool)]
    return flags[0] if flags else "with_update" in name


def asserts_values(name: str, operands: Sequence[Tensor], made: Sequence[Tensor]) -> bool:
    """Whether an operator asserts on a GPU that real numbers lie in some range, which ends the
    process where they don't, or makes integers of real numbers, which may become indices."""
    if name.rstrip("_") in _ASSERTING:
        return True
    converts = name == "_to_copy" and bool(operands) and operands[0].is_floating_point()
    return converts and any(str(t.dtype).startswith(("torch.int", "torch.uint")) for t in made)


def is_recurrent(name: str) -> bool:
    return "rnn" in name


def recurrent_flops(operands: Sequence[Tensor]) -> float:
    """Operations of a recurrent layer's products: each weight meets each step of each sequence.

    `operands`: the input, shape (steps, batch, features) in either order of the first two, then
    the weights among others; those are its matrices.
    """
    steps: int = operands[0].numel() // max(1, operands[0].shape[-1])
    weights: int = sum(t.numel() for t in operands[1:] if t.dim() == 2)
    return 2.0 * steps * weights


def accumulation(
    name: str, args: tuple[Any, ...], operands: Sequence[Tensor], made: Sequence[Tensor]
) -> int:
    """How many terms are summed for one element of the result; 1 where none are."""
    plain = name.rstrip("_") if not name.startswith("_") else name
    if plain in ("mm", "bmm", "mv", "dot"):
        return int(args[0].shape[-1])
    if plain in ("addmm", "baddbmm", "addmv"):
        return int(args[1].shape[-1])
    if "convolution" in plain and len(operands) > 1:
        return max(1, int(math.prod(operands[1].shape[1:])))
    if plain in ("cumsum", "cumprod", "logcumsumexp", "_softmax", "_log_softmax"):
        return int(args[0].shape[args[1]]) if args[0].dim() else 1
    if plain in ("native_layer_norm", "_fused_rms_norm"):
        return int(math.prod(args[1]))
    if plain == "native_group_norm":
        return max(1, int(args[0].numel() // max(1, args[0].shape[0] * int(args[6]))))
    if plain in _BATCH_NORMS:
        if not _takes_batch_statistics(plain, args):
            return 1
        return max(1, int(args[0].numel() // max(1, args[0].shape[1])))
    if plain in _ATTENTION:
        return int(max(args[0].shape[-1], args[1].shape[-2]))
    if is_recurrent(plain):
        return max((int(t.shape[1]) for t in operands[1:] if t.dim() == 2), default=1)
    if plain in _EXTREMES or plain in GATHERS:
        return 1
    if operands and made and made[0].numel():
        return max(1, int(max(t.numel() for t in operands) // made[0].numel()))
    return 1
