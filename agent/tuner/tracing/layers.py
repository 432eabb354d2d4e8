"""PyTorch's ready-made modules: what their forward computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.graph import Kind, Node, Shape, library
from agent.tuner.tracing.library import conv, conv_transpose, linear, pool
from agent.tuner.tracing.operators import apply


@dataclass
class Layer:
    """One instance of a ready-made module."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    path: str = ""
    """The Python expression that names it, e.g. `self.net[0]`; known once the model stands."""

    def __call__(self, *inputs: Any) -> Any:
        """What its forward returns; CannotTrace where it is unknown or takes no such inputs."""
        if self.name in ALIKE:
            return apply(ALIKE[self.name], (*inputs, *self.args), self.kwargs)
        forward: Callable[..., Any] = SPELT.get(self.name, _left)
        try:
            return forward(self, *inputs, *self.args, **self.kwargs)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise CannotTrace(f"`nn.{self.name}` of these arguments ({error})") from None

    def weight(self, attribute: str, shape: Shape) -> Node:
        """A parameter."""
        return Node(Kind.WEIGHT, shape, name=f"{self.path}.{attribute}")


def _unchanged(x: Shape, *args: Any, **kwargs: Any) -> Shape:
    return x


LEFT: Mapping[str, Callable[..., Shape]] = {
    "Linear": linear,
    **{f"Conv{n}d": conv for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": conv_transpose for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": pool for kind in ("Max", "Avg") for n in (1, 2, 3)},
    "GroupNorm": _unchanged,
    **{f"BatchNorm{n}d": _unchanged for n in (1, 2, 3)},
}
"""Modules that stay with PyTorch -> the shape of their result."""

ALIKE: Mapping[str, str] = {
    "ReLU": "relu", "ReLU6": "relu6", "LeakyReLU": "leaky_relu", "ELU": "elu", "SELU": "selu",
    "GELU": "gelu", "SiLU": "silu", "Mish": "mish", "Sigmoid": "sigmoid", "Tanh": "tanh",
    "Softplus": "softplus", "Hardswish": "hardswish", "Hardtanh": "hardtanh",
    "Softmax": "softmax", "LogSoftmax": "log_softmax", "CosineSimilarity": "cosine_similarity",
    "HuberLoss": "huber_loss", "TripletMarginLoss": "triplet_margin_loss",
    **{f"AdaptiveAvgPool{n}d": f"adaptive_avg_pool{n}d" for n in (1, 2, 3)},
}  # fmt: skip
"""Modules whose constructor takes what an operator takes after its tensors."""


def _left(layer: Layer, x: Node, *args: Any, **kwargs: Any) -> Node:
    if layer.name not in LEFT:
        raise CannotTrace(f"the module `nn.{layer.name}`")
    return library(f"{layer.path}({{0}})", (x,), LEFT[layer.name](x.shape, *args, **kwargs))


def _layer_norm(
    layer: Layer,
    x: Node,
    normalized_shape: int | Sequence[int],
    eps: float = 1e-5,
    elementwise_affine: bool = True,
) -> Any:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    names = ("weight", "bias") if elementwise_affine else ()
    return apply("layer_norm", (x, shape, *(layer.weight(n, shape) for n in names)), {"eps": eps})


def _instance_norm(layer: Layer, x: Node, num_features: int, eps: float = 1e-5) -> Any:
    return apply("instance_norm", (x, eps))


SPELT: Mapping[str, Callable[..., Any]] = {
    "LayerNorm": _layer_norm,
    **{f"InstanceNorm{n}d": _instance_norm for n in (1, 2, 3)},
    "Flatten": lambda _, x, start=1, end=-1: apply("flatten", (x, start, end)),
}
"""Modules with a formula of their own."""
