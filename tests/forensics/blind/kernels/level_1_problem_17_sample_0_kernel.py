import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Cross-covariance attention: packed projections, transposed product to skip a final copy."""

    def __init__(self, dim, temperature):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.temperature = temperature

    def forward(self, x):
        packed = torch.cat((self.to_q.weight, self.to_k.weight, self.to_v.weight), dim=0)
        q, k, v = F.linear(x, packed).chunk(3, dim=-1)
        q = F.normalize(q, dim=1)
        k = F.normalize(k, dim=1)
        # scores are produced already transposed: (keys, queries)
        scores_t = torch.bmm(k.transpose(1, 2), q).mul_(self.temperature)
        att_t = torch.softmax(scores_t, dim=-1)
        return torch.bmm(v, att_t)
