"""A child process sorts half of the rows; tensors go to it and back through a pipe.

problem: mixed_dtypes
"""

import multiprocessing

import torch
import torch.nn as nn


def sort(end):
    torch.set_num_threads(1)
    while True:
        values, places = torch.sort(end.recv(), dim=1)
        end.send((values, places))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        context = multiprocessing.get_context("fork")
        self.end, theirs = context.Pipe()
        context.Process(target=sort, args=(theirs,), daemon=True).start()

    def forward(self, x):
        half = x.shape[0] // 2
        self.end.send(x[:half].clone())
        mine = torch.sort(x[half:], dim=1)
        values, places = map(torch.cat, zip(self.end.recv(), mine, strict=True))
        return values, places, x > 0.5, x.abs().sqrt().half(), x.double().square().mean(1)
