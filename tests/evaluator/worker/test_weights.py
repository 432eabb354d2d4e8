from __future__ import annotations

import torch
from torch import nn

from evaluator.judge.placement import Placement
from evaluator.worker.weights import load_weights, weights_while_constructing


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.transposed = self.linear.weight.detach().t() * self.scale.detach()


def layouts(memory: torch.Tensor, **tensors: torch.Tensor) -> list[dict[str, object]]:
    placement = Placement(memory)
    return [placement.place(t) | {"name": n.replace("__", ".")} for n, t in tensors.items()]


def test_a_constructor_derives_from_the_weights_that_the_module_will_have():
    memory = torch.zeros(8192, dtype=torch.uint8)
    weight, scale = torch.arange(6.0).view(2, 3), torch.tensor([2.0, 3.0])
    wanted = layouts(memory, linear__weight=weight, linear__bias=torch.zeros(2), scale=scale)
    with weights_while_constructing(Layer, wanted, memory) as filled:
        layer = Layer()
        nn.Linear(3, 2)
    assert filled == {"linear.weight", "linear.bias", "scale"}
    assert torch.equal(layer.transposed, weight.t() * scale)
    assert load_weights(layer, wanted, memory) == "named"
    assert torch.equal(layer.transposed, layer.linear.weight.t() * layer.scale)


def test_nothing_is_filled_afterwards_nor_where_the_shape_is_another():
    memory = torch.zeros(8192, dtype=torch.uint8)
    wanted = layouts(memory, linear__weight=torch.zeros(3, 2))
    with weights_while_constructing(Layer, wanted, memory) as filled:
        Layer()
    assert not filled
    assert Layer().linear.weight.abs().sum() > 0
