from __future__ import annotations

import pytest
import torch

from evaluator.judge.problem import reference
from evaluator.worker import values


def test_judge_and_worker_flatten_alike_whatever_the_order_of_a_dicts_keys():
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    theirs = {"a": one, "b": [two, None, (three, 4)], 5: {"z": one, "y": two}}
    ours = {5: {"y": two, "z": one}, "b": (two, [three, 4]), "a": one}
    wanted = [(2,), (1,), (1,), (2,), (3,), ()]
    for flatten in (values.flatten, reference.flatten):
        for result in (theirs, ours):
            assert [tuple(tensor.shape) for tensor in flatten(result)] == wanted


@pytest.mark.parametrize("base", [torch.Tensor, torch.nn.Parameter])
def test_a_result_that_may_compute_when_it_is_looked_at_is_refused(base):
    lazy = torch.zeros(3).as_subclass(type("Lazy", (base,), {}))
    with pytest.raises(values.TensorSubclassError, match="Lazy"):
        values.flatten([torch.zeros(3), lazy])
