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


class Folded(Layer):
    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.linear.bias.sub_(1)
        nn.init.normal_(self.scale)


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


def test_a_constructor_derives_from_the_weights_that_the_module_will_have():
    made = with_weights(lambda: build(Layer), Layer, WEIGHTS)
    assert (made.fit, made.changed) == ("named", False)
    assert torch.equal(made.module.transposed, WEIGHTS["linear.weight"].t() * WEIGHTS["scale"])
    assert torch.equal(made.module.scale.detach(), WEIGHTS["scale"])


def test_what_is_derived_stays_and_what_is_initialised_is_replaced():
    made = with_weights(lambda: build(Folded), Folded, WEIGHTS)
    assert (made.fit, made.changed) == ("derived", True)
    assert torch.equal(made.module.linear.bias.detach(), WEIGHTS["linear.bias"] - 1)
    assert torch.equal(made.module.scale.detach(), WEIGHTS["scale"])


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


def test_nothing_is_filled_afterwards():
    with_weights(lambda: build(Layer), Layer, WEIGHTS)
    assert torch.equal(build(Layer).scale.detach(), torch.ones(2))
