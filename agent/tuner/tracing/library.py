"""Operators whose main loop stays with PyTorch, and those that only change a shape.

For a library call the tuner only has to know the result's shape; formulas are those of PyTorch's
documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Builder, Kind, Node, Shape, broadcast
from agent.tuner.tracing.operators import Operand, known
from agent.tuner.tracing.pointwise import binary

Size = int | Sequence[int]


def tensor(value: Any) -> Node:
    """`value`, which has to be a tensor."""
    if not isinstance(value, Node):
        raise CannotTrace(f"a {type(value).__name__} where a tensor is expected")
    return value


def call(b: Builder, name: str, tensors: Sequence[Any], shape: Shape, **options: Any) -> Node:
    """`name(tensors..., options...)` as a library call."""
    nodes = [t for t in tensors if isinstance(t, Node)]
    words = [f"{{{nodes.index(t)}}}" if isinstance(t, Node) else repr(t) for t in tensors]
    words += [f"{key}={value!r}" for key, value in options.items()]
    return b.library(f"{name}({', '.join(words)})", nodes, shape)


# Matrix products ----------------------------------------------------------------------------------


def _matmul_shape(a: Shape, c: Shape) -> Shape:
    rows = a if len(a) > 1 else (1, *a)
    columns = c if len(c) > 1 else (*c, 1)
    if rows[-1] != columns[-2]:
        raise ValueError(f"{a} @ {c}")
    batch = broadcast(rows[:-2], columns[:-2])
    return batch + (rows[-2:-1] if len(a) > 1 else ()) + (columns[-1:] if len(c) > 1 else ())


@known("matmul", "mm", "bmm", "mv")
def matmul(b: Builder, input: Operand, other: Operand) -> Node:
    """A matrix product; one with a diagonal matrix becomes a scaling of rows or columns."""
    x, y = tensor(input), tensor(other)
    shape = _matmul_shape(x.shape, y.shape)
    if x.op == "diag" and len(y.shape) > 1:
        return binary(b, "mul", b.view(x.args[0], (x.args[0].numel, 1)), y)
    if y.op == "diag" and len(x.shape) > 1:
        return binary(b, "mul", x, y.args[0])
    return call(b, "torch.matmul", (x, y), shape)


@known("dot", "inner")
def dot(b: Builder, input: Operand, other: Operand) -> Node:
    """Of two vectors."""
    x, y = tensor(input), tensor(other)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise CannotTrace("an inner product of matrices")
    return b.view(b.reduce("sum", binary(b, "mul", x, y), (0,)), ())


@known("diag", "diag_embed")
def diag(b: Builder, input: Operand) -> Node:
    """The diagonal matrix of a vector."""
    x = tensor(input)
    if len(x.shape) != 1:
        raise CannotTrace("the diagonal of a matrix")
    node = Node(Kind.LIBRARY, x.shape * 2, "float32", (x,), "diag", call="torch.diag({0})")
    return b.add(node)


@known("linear")
def linear(b: Builder, input: Operand, weight: Operand, bias: Operand | None = None) -> Node:
    """The bias stays with the library: it costs nothing there."""
    x, w = tensor(input), tensor(weight)
    if x.shape[-1] != w.shape[-1]:
        raise ValueError(f"linear on {x.shape} with {w.shape}")
    return call(b, "F.linear", (x, w, bias), (*x.shape[:-1], w.shape[0]))


@known("addmm")
def addmm(
    b: Builder, input: Operand, mat1: Operand, mat2: Operand, beta: float = 1, alpha: float = 1
) -> Node:
    """beta * input + alpha * mat1 @ mat2."""
    product = binary(b, "mul", matmul(b, mat1, mat2), float(alpha))
    return binary(b, "add", binary(b, "mul", input, float(beta)), product)


@known("einsum")
def einsum(b: Builder, equation: str, *operands: Operand) -> Node:
    """Explicit equations without dots."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow or "." in equation:
        raise CannotTrace(f"the einsum `{equation}`")
    sizes: dict[str, int] = {}
    for letters, operand in zip(left.split(","), operands, strict=True):
        sizes.update(zip(letters, tensor(operand).shape, strict=True))
    nodes = [tensor(o) for o in operands]
    words = ", ".join(f"{{{i}}}" for i in range(len(nodes)))
    shape = tuple(sizes[letter] for letter in right)
    return b.library(f"torch.einsum({equation!r}, {words})", nodes, shape)


@known("scaled_dot_product_attention")
def attention(
    b: Builder,
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Node:
    """Whole, in the library."""
    shape = (*tensor(query).shape[:-1], tensor(value).shape[-1])
    tensors = (query, key, value, attn_mask)
    name = "F.scaled_dot_product_attention"
    return call(b, name, tensors, shape, dropout_p=dropout_p, is_causal=is_causal, scale=scale)


# Convolution and pooling --------------------------------------------------------------------------


def spread(value: Size, rank: int) -> tuple[int, ...]:
    """A size given once for all dimensions, or one for each."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def conv_shape(
    x: Shape, out: int, kernel: Size, stride: Size, padding: Size | str, dilation: Size
) -> Shape:
    """Of a convolution with `out` channels; `x` is batched."""
    rank = len(x) - 2
    k, s, d = spread(kernel, rank), spread(stride, rank), spread(dilation, rank)
    if padding == "same":
        return (x[0], out, *x[2:])
    p = (0,) * rank if isinstance(padding, str) else spread(padding, rank)
    sizes = [(x[2 + i] + 2 * p[i] - d[i] * (k[i] - 1) - 1) // s[i] + 1 for i in range(rank)]
    if min(sizes) < 1:
        raise ValueError("the kernel is larger than the input")
    return (x[0], out, *sizes)


def transposed_shape(
    x: Shape,
    out: int,
    kernel: Size,
    stride: Size,
    padding: Size,
    output_padding: Size,
    dilation: Size,
) -> Shape:
    """Of a transposed convolution."""
    rank = len(x) - 2
    k, s, p = spread(kernel, rank), spread(stride, rank), spread(padding, rank)
    o, d = spread(output_padding, rank), spread(dilation, rank)
    sizes = [(x[2 + i] - 1) * s[i] - 2 * p[i] + d[i] * (k[i] - 1) + o[i] + 1 for i in range(rank)]
    return (x[0], out, *sizes)


def pool_shape(
    x: Shape, kernel: Size, stride: Size | None, padding: Size, dilation: Size, ceil: bool
) -> Shape:
    """Of a pooling window."""
    if ceil:
        raise CannotTrace("ceil_mode")
    return conv_shape(x, x[1], kernel, kernel if stride is None else stride, padding, dilation)


def _register_convolutions() -> None:
    for rank in (1, 2, 3):

        def conv(
            b: Builder,
            input: Operand,
            weight: Operand,
            bias: Operand | None = None,
            stride: Size = 1,
            padding: Size | str = 0,
            dilation: Size = 1,
            groups: int = 1,
            rank: int = rank,
        ) -> Node:
            x, w = tensor(input), tensor(weight)
            shape = conv_shape(x.shape, w.shape[0], w.shape[2:], stride, padding, dilation)
            return call(
                b, f"F.conv{rank}d", (x, w, bias), shape,
                stride=stride, padding=padding, dilation=dilation, groups=groups,
            )  # fmt: skip

        def max_pool(
            b: Builder,
            input: Operand,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            ceil_mode: bool = False,
            rank: int = rank,
        ) -> Node:
            x = tensor(input)
            shape = pool_shape(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
            return call(
                b, f"F.max_pool{rank}d", (x,), shape,
                kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
            )  # fmt: skip

        def avg_pool(
            b: Builder,
            input: Operand,
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            ceil_mode: bool = False,
            count_include_pad: bool = True,
            rank: int = rank,
        ) -> Node:
            x = tensor(input)
            shape = pool_shape(x.shape, kernel_size, stride, padding, 1, ceil_mode)
            return call(
                b, f"F.avg_pool{rank}d", (x,), shape, kernel_size=kernel_size, stride=stride,
                padding=padding, count_include_pad=count_include_pad,
            )  # fmt: skip

        def adaptive_avg(b: Builder, input: Operand, output_size: Size, rank: int = rank) -> Node:
            x = tensor(input)
            sizes = spread(output_size, rank)
            if sizes == (1,) * rank:
                dims = tuple(range(len(x.shape) - rank, len(x.shape)))
                total = b.reduce("sum", x, dims)
                return binary(b, "mul", total, 1.0 / prod(x.shape[-rank:]))
            return call(
                b, f"F.adaptive_avg_pool{rank}d", (x, output_size), (*x.shape[:-rank], *sizes)
            )

        known(f"conv{rank}d")(conv)
        known(f"max_pool{rank}d")(max_pool)
        known(f"avg_pool{rank}d")(avg_pool)
        known(f"adaptive_avg_pool{rank}d")(adaptive_avg)


_register_convolutions()


@known("dropout")
def dropout(b: Builder, input: Operand, p: float = 0.5, training: bool = True) -> Node:
    """Random, unless it does nothing."""
    x = tensor(input)
    if p == 0 or not training:
        return x
    return b.library(f"F.dropout({{0}}, p={p!r})", (x,), x.shape, random=True)


@known("embedding")
def embedding(b: Builder, input: Operand, weight: Operand) -> Node:
    """Rows of a table."""
    x, w = tensor(input), tensor(weight)
    return call(b, "F.embedding", (x, w), (*x.shape, w.shape[1]))


def _register_same_shape() -> None:
    for name in "cumsum cumprod flip roll tril triu".split():  # noqa: SIM905

        def same(b: Builder, input: Operand, *args: Any, name: str = name, **kw: Any) -> Node:
            x = tensor(input)
            summed = name in ("cumsum", "cumprod") and x.dtype in ("bool", "int64")
            dtype = "int64" if summed else x.dtype
            words = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kw.items())])
            return b.library(f"torch.{name}({{0}}, {words})", (x,), x.shape, dtype)

        known(name)(same)


_register_same_shape()


# Shapes -------------------------------------------------------------------------------------------


def sizes_of(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    """`x.view(2, 3)` or `x.view((2, 3))`."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        return tuple(arguments[0])
    return tuple(arguments)


@known("view", "reshape")
def reshape(b: Builder, input: Operand, *shape: Any) -> Node:
    """At most one -1."""
    x, sizes = tensor(input), sizes_of(shape)
    if -1 in sizes:
        rest = -prod(sizes)
        if rest == 0 or sizes.count(-1) > 1:
            raise ValueError(f"view of {x.shape} as {sizes}")
        sizes = tuple(x.numel // rest if n == -1 else n for n in sizes)
    return b.view(x, sizes)


@known("view_as", "reshape_as")
def view_as(b: Builder, input: Operand, other: Operand) -> Node:
    """The other tensor's shape."""
    return b.view(tensor(input), tensor(other).shape)


@known("flatten")
def flatten(b: Builder, input: Operand, start_dim: int = 0, end_dim: int = -1) -> Node:
    """Neighbouring dimensions into one."""
    x = tensor(input)
    rank = max(len(x.shape), 1)
    start, end = start_dim % rank, end_dim % rank
    return b.view(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@known("unsqueeze")
def unsqueeze(b: Builder, input: Operand, dim: int) -> Node:
    """One more dimension of size 1."""
    x = tensor(input)
    at = dim % (len(x.shape) + 1)
    return b.view(x, (*x.shape[:at], 1, *x.shape[at:]))


@known("squeeze")
def squeeze(b: Builder, input: Operand, dim: int | Sequence[int] | None = None) -> Node:
    """Without dimensions of size 1."""
    x = tensor(input)
    dims = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % len(x.shape) for d in dims}
    return b.view(x, tuple(n for d, n in enumerate(x.shape) if n != 1 or d not in gone))


@known("permute")
def permute(b: Builder, input: Operand, *dims: Any) -> Node:
    """Two in a row become one, and none where they cancel."""
    x = tensor(input)
    order = tuple(d % len(x.shape) for d in sizes_of(dims))
    if x.op == "permute":
        return permute(b, x.args[0], tuple(x.dims[d] for d in order))
    if order == tuple(range(len(order))):
        return x
    shape = tuple(x.shape[d] for d in order)
    moved = [d for d in order if x.shape[d] > 1]
    if moved == sorted(moved):
        return b.view(x, shape)
    text = f"{{0}}.permute({', '.join(map(str, order))})"
    return b.add(
        Node(Kind.LIBRARY, shape, x.dtype, (x,), "permute", dims=order, call=text, contiguous=False)
    )


@known("transpose", "swapaxes", "swapdims")
def transpose(b: Builder, input: Operand, dim0: int, dim1: int) -> Node:
    """Two dimensions change places."""
    order = list(range(len(tensor(input).shape)))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(b, input, order)


@known("t", "T", "mT")
def matrix_transpose(b: Builder, input: Operand) -> Node:
    """The last two dimensions change places."""
    return input if len(tensor(input).shape) < 2 else transpose(b, input, -2, -1)  # type: ignore[return-value]


@known("expand", "expand_as", "broadcast_to")
def expand(b: Builder, input: Operand, *shape: Any) -> Node:
    """A copy where it is needed as such; operators broadcast by themselves."""
    x = tensor(input)
    wanted = shape[0].shape if isinstance(shape[0], Node) else sizes_of(shape)
    lead = len(wanted) - len(x.shape)
    sizes = tuple(x.shape[d - lead] if n == -1 else n for d, n in enumerate(wanted))
    return call(b, "torch.broadcast_to", (x, sizes), sizes)


@known("cat", "concat", "concatenate")
def cat(b: Builder, tensors: Sequence[Operand], dim: int = 0) -> Node:
    """Stays a copy."""
    nodes = [tensor(t) for t in tensors]
    axis = dim % len(nodes[0].shape)
    total = sum(n.shape[axis] for n in nodes)
    shape = (*nodes[0].shape[:axis], total, *nodes[0].shape[axis + 1 :])
    words = ", ".join(f"{{{i}}}" for i in range(len(nodes)))
    return b.library(f"torch.cat([{words}], dim={axis})", nodes, shape, nodes[0].dtype)


@known("stack")
def stack(b: Builder, tensors: Sequence[Operand], dim: int = 0) -> Node:
    """Along a new dimension."""
    return cat(b, [unsqueeze(b, t, dim) for t in tensors], dim)


@known("chunk")
def chunk(b: Builder, input: Operand, chunks: int, dim: int = 0) -> tuple[Node, ...]:
    """Equal parts."""
    size = tensor(input).shape[dim]
    return split(b, input, -(-size // chunks), dim)


@known("split")
def split(b: Builder, input: Operand, split_size: Size, dim: int = 0) -> tuple[Node, ...]:
    """Parts of a size, or of sizes."""
    x = tensor(input)
    axis = dim % len(x.shape)
    size = x.shape[axis]
    parts = (
        [min(split_size, size - i) for i in range(0, size, split_size)]
        if isinstance(split_size, int)
        else list(split_size)
    )
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return tuple(narrow(b, x, axis, start, part) for start, part in zip(starts, parts, strict=True))


@known("narrow")
def narrow(b: Builder, input: Operand, dim: int, start: int, length: int) -> Node:
    """A slice along one dimension."""
    x = tensor(input)
    axis = dim % len(x.shape)
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    if length == x.shape[axis]:
        return x
    call = f"{{0}}.narrow({axis}, {start}, {length})"
    dims = (axis, start)
    return b.add(
        Node(Kind.LIBRARY, shape, x.dtype, (x,), "narrow", dims=dims, call=call, contiguous=False)
    )


@known("gather")
def gather(b: Builder, input: Operand, dim: int, index: Operand) -> Node:
    """Stays with the library."""
    x, where = tensor(input), tensor(index)
    return b.library(f"torch.gather({{0}}, {dim}, {{1}})", (x, where), where.shape, x.dtype)


@known("index_select")
def index_select(b: Builder, input: Operand, dim: int, index: Operand) -> Node:
    """Stays with the library."""
    x, where = tensor(input), tensor(index)
    axis = dim % len(x.shape)
    shape = (*x.shape[:axis], where.numel, *x.shape[axis + 1 :])
    return b.library(f"torch.index_select({{0}}, {axis}, {{1}})", (x, where), shape, x.dtype)


def index(b: Builder, x: Node, key: Any) -> Node:
    """`x[key]` of numbers, slices, None and an ellipsis; or of one tensor of positions."""
    if isinstance(key, Node) and key.dtype == "int64":
        return b.library("{0}[{1}]", (x, key), (*key.shape, *x.shape[1:]), x.dtype)
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(x.shape) - used)
    parts += [slice(None)] * (len(x.shape) - sum(1 for p in parts if p is not None))
    shape: list[int] = []
    words: list[str] = []
    position = 0
    for part in parts:
        if part is None:
            shape.append(1)
            words.append("None")
            continue
        size = x.shape[position]
        position += 1
        if isinstance(part, slice):
            span = range(*part.indices(size))
            shape.append(len(span))
            words.append(
                ":".join("" if v is None else str(v) for v in (part.start, part.stop, part.step))
                if part.step is not None
                else f"{'' if part.start is None else part.start}:"
                f"{'' if part.stop is None else part.stop}"
            )
        elif isinstance(part, int):
            words.append(str(part))
        else:
            raise CannotTrace("indexing with a tensor")
    if prod(shape) == x.numel:
        return b.view(x, tuple(shape))
    cut = [d for d, part in enumerate(parts) if part != slice(None)]
    if len(cut) == 1 and isinstance(parts[cut[0]], slice) and parts[cut[0]].step in (None, 1):
        start, stop, _ = parts[cut[0]].indices(x.shape[cut[0]])
        return narrow(b, x, cut[0], start, max(stop - start, 0))
    return b.library(f"{{0}}[{', '.join(words)}]", (x,), tuple(shape), x.dtype)
