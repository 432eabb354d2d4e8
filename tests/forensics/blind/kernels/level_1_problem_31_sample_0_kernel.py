import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.v = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)

    def _pool(self, part):
        s = self.score(torch.tanh(self.v(part)))
        e = torch.exp(s - s.amax(dim=1, keepdim=True))
        return torch.bmm((e / e.sum(dim=1, keepdim=True)).transpose(1, 2), part).squeeze(1)

    def forward(self, x):
        # two tiles of the bag, smaller working set
        mid = x.shape[1] // 2
        return 0.5 * (self._pool(x[:, :mid]) + self._pool(x[:, mid:]))
