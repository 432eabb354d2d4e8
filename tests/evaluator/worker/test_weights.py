from __future__ import annotations

import torch
from torch import nn

from evaluator.worker.weights import with_weights


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.transposed = self.linear.weight.detach().t() * self.scale.detach()


def weights(**tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    return {name.replace("__", "."): tensor for name, tensor in tensors.items()}


WEIGHTS = weights(
    linear__weight=torch.arange(6.0).view(2, 3),
    linear__bias=torch.zeros(2),
    scale=torch.tensor([2.0, 3.0]),
)


def build(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def test_by_order_nothing_is_derived_from_some_of_the_weights():
    other = {"linear.weight": WEIGHTS["linear.weight"], "b": torch.ones(2), "s": torch.ones(2)}
    made = with_weights(lambda: build(Layer), Layer, other)
    assert made.fit == "unmatched"
    reordered = {"s": torch.zeros(2), "linear.weight": torch.ones(2, 3), "b": torch.ones(2)}
    made = with_weights(lambda: build(Layer), Layer, reordered)
    assert made.fit == "ordered"
    assert torch.equal(made.module.transposed, build(Layer).transposed)
    assert torch.equal(made.module.scale.detach(), torch.zeros(2))


class Converted(Layer):
    def __init__(self):
        super().__init__()
        self.double()


def test_a_constructor_may_convert_its_weights():
    made = with_weights(lambda: build(Converted), Converted, WEIGHTS)
    assert made.fit == "derived"
    assert torch.equal(made.module.scale.detach(), WEIGHTS["scale"].double())
