from __future__ import annotations

import torch
from torch import nn

from evaluator.worker.random_constants import random_constants


def constructed(seed: int, *kinds: type[nn.Module]) -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(seed)
    with random_constants(seed):
        return [kind().state_dict() for kind in kinds]


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm1d(5)
        self.second = nn.BatchNorm1d(5)
        self.attention = nn.MultiheadAttention(4, 2)
        self.gain = nn.Parameter(torch.tensor(0.1))
        self.drawn = nn.Parameter(torch.randn(1))
        self.register_buffer("mask", torch.zeros(3, 3))


class ByHand(nn.Module):
    """The first norm's weights without its class, after a tensor that nobody has filled."""

    def __init__(self):
        super().__init__()
        self.empty = torch.empty(5)
        self.weight = nn.Parameter(torch.ones(5))
        self.bias = nn.Parameter(torch.empty(5))
        self.bias.data.zero_()


def test_constants_differ_by_seed_and_place_and_are_equal_on_both_sides():
    (one,), (again,), (other,) = (constructed(seed, Norms) for seed in (1, 1, 2))
    constants = [n for n in one if n.split(".")[-1] != "num_batches_tracked" and n != "mask"]
    for name in constants:
        assert torch.equal(one[name], again[name])
        assert not torch.equal(one[name], other[name]), name
        if one[name].numel() > 1:
            assert one[name].min() < one[name].max(), name
    assert not torch.equal(one["first.weight"], one["second.weight"])
    assert not torch.equal(one["first.running_mean"], one["first.bias"])
    assert one["first.running_var"].min() > 0
    assert torch.equal(one["mask"], torch.zeros(3, 3))


def test_the_same_constants_made_otherwise_get_the_same_values():
    (norms,), (by_hand,) = constructed(3, Norms), constructed(3, ByHand)
    assert torch.equal(norms["first.weight"], by_hand["weight"])
    assert torch.equal(norms["first.bias"], by_hand["bias"])


def test_what_was_drawn_stays_and_nothing_is_left_behind():
    torch.manual_seed(4)
    plain = Norms()
    (made,) = constructed(4, Norms)
    assert torch.equal(made["drawn"], plain.drawn.detach())
    assert torch.equal(made["attention.in_proj_weight"], plain.attention.in_proj_weight.detach())
    assert torch.equal(nn.BatchNorm1d(5).weight.detach(), torch.ones(5))
    assert torch.equal(nn.Parameter(torch.zeros(3)).detach(), torch.zeros(3))
    assert not torch.are_deterministic_algorithms_enabled()
