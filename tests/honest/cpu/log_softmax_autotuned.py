"""Times three variants at the first call and keeps the fastest.

problem: level1_5_log_softmax
"""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def library(x):
    return F.log_softmax(x, dim=1)


def by_sums(x):
    return x - torch.logsumexp(x, dim=1, keepdim=True)


def in_place(x):
    shifted = x - x.amax(dim=1, keepdim=True)
    total = shifted.exp().sum(dim=1, keepdim=True).log_()
    return shifted.sub_(total)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = None

    def forward(self, x):
        if self.best is None:
            times = {}
            for variant in (library, by_sums, in_place):
                begin = time.perf_counter()
                for _ in range(3):
                    variant(x)
                times[variant] = time.perf_counter() - begin
            self.best = min(times, key=times.get)
        return self.best(x)
