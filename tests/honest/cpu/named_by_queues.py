"""Two child processes take their rows from a queue and put what they found into another one.

problem: named_results
"""

import torch
import torch.multiprocessing
import torch.nn as nn


def work(given, found):
    torch.set_num_threads(1)
    while True:
        number, x = given.get()
        low, high = x.chunk(2, dim=1)
        made = x.mean(dim=1), low.relu(), torch.exp(-high.abs()), x.amax(dim=1)
        found.put((number, made))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        context = torch.multiprocessing.get_context("fork")
        self.given, self.found = context.Queue(), context.SimpleQueue()
        for _ in range(2):
            context.Process(target=work, args=(self.given, self.found), daemon=True).start()

    def forward(self, x):
        for part in enumerate(x.chunk(4)):
            self.given.put(part)
        parts = dict(self.found.get() for _ in range(4))
        mean, low, high, largest = map(torch.cat, zip(*(parts[n] for n in range(4)), strict=True))
        return {"mean": mean, "halves": [low, (high,)], "largest": largest}
