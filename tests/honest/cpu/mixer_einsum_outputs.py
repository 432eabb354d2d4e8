"""Returns a permuted view of its own buffer.

problem: level3_4_mixer_block
pace: slow
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, tokens, dim, token_hidden, dim_hidden):
        super().__init__()
        self.token_norm = nn.LayerNorm(dim)
        self.token_up = nn.Linear(tokens, token_hidden)
        self.token_down = nn.Linear(token_hidden, tokens)
        self.dim_norm = nn.LayerNorm(dim)
        self.dim_up = nn.Linear(dim, dim_hidden)
        self.dim_down = nn.Linear(dim_hidden, dim)

    def forward(self, x):
        up, down = self.token_up, self.token_down
        across = torch.einsum("btd,ht->bhd", self.token_norm(x), up.weight)
        across = F.gelu(across.add_(up.bias[:, None]))
        x = x + torch.einsum("bhd,th->btd", across, down.weight) + down.bias[:, None]
        along = F.gelu(self.dim_up(self.dim_norm(x)))
        result = torch.empty(x.shape[1], x.shape[0], x.shape[2]).permute(1, 0, 2)
        return torch.add(x, self.dim_down(along), out=result)
