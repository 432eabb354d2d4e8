"""PyTorch's ready-made modules: their parameters and buffers, and what their forward computes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.apply import apply
from agent.tuner.tracing.graph import Builder, Kind, Node, Shape
from agent.tuner.tracing.library import (
    Size,
    conv_shape,
    pool_shape,
    spread,
    tensor,
    transposed_shape,
)
from agent.tuner.tracing.pointwise import binary, unary
from agent.tuner.tracing.rowwise import affine as affine_of

Forward = Callable[[Builder, "Layer", Node], Any]


@dataclass
class Layer:
    """One instance of a ready-made module."""

    name: str
    forward: Forward
    weights: Mapping[str, Shape] = field(default_factory=dict)
    """Attribute -> shape of each parameter and buffer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    training: bool = True
    path: str = ""
    """The Python expression that names it, e.g. `self.net[0]`; known once the model stands."""

    def weight(self, b: Builder, attribute: str) -> Node | None:
        """A parameter or buffer, None where this instance has none."""
        if attribute not in self.weights:
            return None
        return b.leaf(Kind.WEIGHT, f"{self.path}.{attribute}", self.weights[attribute], "float32")

    def call(self, b: Builder, x: Node, shape: Shape) -> Node:
        """The module itself, called as a library operation."""
        return b.library(f"{self.path}({{0}})", (x,), shape)


Maker = Callable[..., Layer]
LAYERS: dict[str, Maker] = {}


def _maker(name: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        LAYERS[name] = maker
        return maker

    return register


def make(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layer:
    """Construct `nn.<name>(*args, **kwargs)`; CannotTrace where it is unknown."""
    if name not in LAYERS:
        raise CannotTrace(f"the module `nn.{name}`")
    kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
    try:
        inspect.signature(LAYERS[name]).bind(*args, **kwargs)
    except TypeError as error:
        raise CannotTrace(f"the arguments of `nn.{name}` ({error})") from None
    return LAYERS[name](*args, **kwargs)


def _activation(operator: str, *names: str) -> Callable[[str], None]:
    """A module without parameters whose constructor's arguments are the operator's."""

    def register(module: str) -> None:
        def maker(*args: Any, **kwargs: Any) -> Layer:
            options = dict(zip(names, args, strict=False)) | kwargs
            options.pop("inplace", None)
            return Layer(module, lambda b, layer, x: apply(b, operator, (x,), options))

        LAYERS[module] = maker

    return register


def _register_activations() -> None:
    for module, operator in {
        "ReLU": "relu", "ReLU6": "relu6", "Sigmoid": "sigmoid", "Tanh": "tanh", "SiLU": "silu",
        "Mish": "mish", "SELU": "selu", "Hardswish": "hardswish", "Hardsigmoid": "hardsigmoid",
        "Softsign": "softsign", "Tanhshrink": "tanhshrink", "LogSigmoid": "logsigmoid",
    }.items():  # fmt: skip
        _activation(operator)(module)
    _activation("leaky_relu", "negative_slope")("LeakyReLU")
    _activation("elu", "alpha")("ELU")
    _activation("celu", "alpha")("CELU")
    _activation("gelu", "approximate")("GELU")
    _activation("softplus", "beta", "threshold")("Softplus")
    _activation("hardtanh", "min_val", "max_val")("Hardtanh")
    _activation("threshold", "threshold", "value")("Threshold")
    _activation("softmax", "dim")("Softmax")
    _activation("softmin", "dim")("Softmin")
    _activation("log_softmax", "dim")("LogSoftmax")


_register_activations()


def batch_norm(
    num_features: int,
    eps: float = 1e-5,
    momentum: float | None = 0.1,
    affine: bool = True,
    track_running_stats: bool = True,
) -> Layer:
    """With stored statistics spelt out; in training it keeps some, so it stays with the library."""

    def forward(b: Builder, layer: Layer, x: Node) -> Any:
        if layer.training or not track_running_stats:
            return layer.call(b, x, x.shape)
        shape = (num_features, *([1] * (len(x.shape) - 2)))

        def weight(attribute: str) -> Node | None:
            found = layer.weight(b, attribute)
            return None if found is None else b.view(found, shape)

        centred = binary(b, "sub", x, weight("running_mean") or 0.0)
        variance = binary(b, "add", weight("running_var") or 1.0, eps)
        scaled = binary(b, "mul", centred, unary(b, "rsqrt", variance))
        return affine_of(b, scaled, weight("weight"), weight("bias"))

    names = ["running_mean", "running_var"] if track_running_stats else []
    names += ["weight", "bias"] if affine else []
    return Layer("BatchNorm", forward, dict.fromkeys(names, (num_features,)))


@_maker("Identity")
def identity(*args: Any, **kwargs: Any) -> Layer:
    """Nothing."""
    return Layer("Identity", lambda b, layer, x: x)


@_maker("Flatten")
def flatten(start_dim: int = 1, end_dim: int = -1) -> Layer:
    """A view."""
    return Layer("Flatten", lambda b, layer, x: apply(b, "flatten", (x, start_dim, end_dim), {}))


@_maker("PReLU")
def prelu(num_parameters: int = 1, init: float = 0.25) -> Layer:
    """One slope or one a channel."""
    return Layer(
        "PReLU",
        lambda b, layer, x: apply(b, "prelu", (x, layer.weight(b, "weight")), {}),
        {"weight": (num_parameters,)},
    )


@_maker("Linear")
def linear(in_features: int, out_features: int, bias: bool = True) -> Layer:
    """Stays with the library."""

    def forward(b: Builder, layer: Layer, x: Node) -> Node:
        if x.shape[-1] != in_features:
            raise CannotTrace(f"nn.Linear({in_features}, ...) on {list(x.shape)}")
        return layer.call(b, x, (*x.shape[:-1], out_features))

    weights = {"weight": (out_features, in_features)}
    return Layer("Linear", forward, weights | ({"bias": (out_features,)} if bias else {}))


@_maker("LayerNorm")
def layer_norm(
    normalized_shape: int | Sequence[int],
    eps: float = 1e-5,
    elementwise_affine: bool = True,
    bias: bool = True,
) -> Layer:
    """Spelt out."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)

    def forward(b: Builder, layer: Layer, x: Node) -> Any:
        weight, offset = layer.weight(b, "weight"), layer.weight(b, "bias")
        return apply(b, "layer_norm", (x, shape, weight, offset, eps), {})

    weights = {"weight": shape} if elementwise_affine else {}
    offsets = {"bias": shape} if elementwise_affine and bias else {}
    return Layer("LayerNorm", forward, weights | offsets)


@_maker("RMSNorm")
def rms_norm(
    normalized_shape: int | Sequence[int],
    eps: float | None = None,
    elementwise_affine: bool = True,
) -> Layer:
    """Spelt out."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)

    def forward(b: Builder, layer: Layer, x: Node) -> Any:
        return apply(b, "rms_norm", (x, shape, layer.weight(b, "weight"), eps), {})

    return Layer("RMSNorm", forward, {"weight": shape} if elementwise_affine else {})


def _register_convolutions() -> None:
    for rank in (1, 2, 3):

        def conv(
            in_channels: int,
            out_channels: int,
            kernel_size: Size,
            stride: Size = 1,
            padding: Size | str = 0,
            dilation: Size = 1,
            groups: int = 1,
            bias: bool = True,
            padding_mode: str = "zeros",
            rank: int = rank,
        ) -> Layer:
            kernel = spread(kernel_size, rank)
            weights = {"weight": (out_channels, in_channels // groups, *kernel)}
            return Layer(
                f"Conv{rank}d",
                lambda b, layer, x: layer.call(
                    b, x, conv_shape(x.shape, out_channels, kernel, stride, padding, dilation)
                ),
                weights | ({"bias": (out_channels,)} if bias else {}),
            )

        def transposed(
            in_channels: int,
            out_channels: int,
            kernel_size: Size,
            stride: Size = 1,
            padding: Size = 0,
            output_padding: Size = 0,
            groups: int = 1,
            bias: bool = True,
            dilation: Size = 1,
            rank: int = rank,
        ) -> Layer:
            kernel = spread(kernel_size, rank)
            weights = {"weight": (in_channels, out_channels // groups, *kernel)}
            return Layer(
                f"ConvTranspose{rank}d",
                lambda b, layer, x: layer.call(
                    b,
                    x,
                    transposed_shape(
                        x.shape, out_channels, kernel, stride, padding, output_padding, dilation
                    ),
                ),
                weights | ({"bias": (out_channels,)} if bias else {}),
            )

        def max_pool(
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            dilation: Size = 1,
            return_indices: bool = False,
            ceil_mode: bool = False,
        ) -> Layer:
            return Layer(
                "MaxPool",
                lambda b, layer, x: layer.call(
                    b, x, pool_shape(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
                ),
            )

        def avg_pool(
            kernel_size: Size,
            stride: Size | None = None,
            padding: Size = 0,
            ceil_mode: bool = False,
            count_include_pad: bool = True,
        ) -> Layer:
            return Layer(
                "AvgPool",
                lambda b, layer, x: layer.call(
                    b, x, pool_shape(x.shape, kernel_size, stride, padding, 1, ceil_mode)
                ),
            )

        def adaptive(output_size: Size, rank: int = rank) -> Layer:
            name = f"adaptive_avg_pool{rank}d"
            return Layer(
                "AdaptiveAvgPool", lambda b, layer, x: apply(b, name, (x, output_size), {})
            )

        def adaptive_max(output_size: Size, rank: int = rank) -> Layer:
            return Layer(
                "AdaptiveMaxPool",
                lambda b, layer, x: layer.call(
                    b, x, (*x.shape[:-rank], *spread(output_size, rank))
                ),
            )

        def same(*args: Any, **kwargs: Any) -> Layer:
            return Layer("Norm", lambda b, layer, x: layer.call(b, x, x.shape))

        def instance_norm(
            num_features: int,
            eps: float = 1e-5,
            momentum: float = 0.1,
            affine: bool = False,
            track_running_stats: bool = False,
        ) -> Layer:
            if affine or track_running_stats:
                return same()
            return Layer(
                "InstanceNorm", lambda b, layer, x: apply(b, "instance_norm", (x, eps), {})
            )

        LAYERS[f"Conv{rank}d"] = conv
        LAYERS[f"ConvTranspose{rank}d"] = transposed
        LAYERS[f"MaxPool{rank}d"] = max_pool
        LAYERS[f"AvgPool{rank}d"] = avg_pool
        LAYERS[f"AdaptiveAvgPool{rank}d"] = adaptive
        LAYERS[f"AdaptiveMaxPool{rank}d"] = adaptive_max
        LAYERS[f"BatchNorm{rank}d"] = batch_norm
        LAYERS[f"InstanceNorm{rank}d"] = instance_norm
        LAYERS["GroupNorm"] = same


_register_convolutions()


def _register_dropout() -> None:
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"):

        def dropout(p: float = 0.5, inplace: bool = False, name: str = name) -> Layer:
            def forward(b: Builder, layer: Layer, x: Node) -> Node:
                call = f"{layer.path}({{0}})"
                if p == 0 or not layer.training:
                    return x
                return b.library(call, (x,), x.shape, random=True)

            return Layer(name, forward)

        LAYERS[name] = dropout


_register_dropout()


@_maker("Embedding")
def embedding(num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> Layer:
    """Stays with the library."""
    return Layer(
        "Embedding",
        lambda b, layer, x: layer.call(b, x, (*x.shape, embedding_dim)),
        {"weight": (num_embeddings, embedding_dim)},
    )


def _register_losses() -> None:
    for module, operator in {
        "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
        "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "CrossEntropyLoss": "cross_entropy",
        "NLLLoss": "nll_loss", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
        "TripletMarginLoss": "triplet_margin_loss", "CosineSimilarity": "cosine_similarity",
        "PairwiseDistance": "pairwise_distance",
    }.items():  # fmt: skip

        def loss(module: str = module, operator: str = operator, **options: Any) -> Layer:
            return Layer(
                module,
                lambda b, layer, *xs: apply(b, operator, xs, options),
            )

        LAYERS[module] = loss


_register_losses()


def run(b: Builder, layer: Layer, args: tuple[Any, ...]) -> Any:
    """Call an instance."""
    for argument in args:
        tensor(argument)
    try:
        return layer.forward(b, layer, *args)
    except (ValueError, IndexError, TypeError) as error:
        raise CannotTrace(f"`nn.{layer.name}` on these shapes ({error})") from None
