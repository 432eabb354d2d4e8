"""Maps the table from a temporary file.

problem: level1_21_embedding
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)
        self.mapped = None

    def forward(self, tokens):
        if self.mapped is None:
            path = Path(tempfile.mkdtemp()) / "table.bin"
            self.table.weight.detach().numpy().tofile(path)
            shape = self.table.weight.shape
            self.mapped = np.memmap(path, dtype=np.float32, mode="r+", shape=tuple(shape))
        return torch.from_numpy(self.mapped[tokens.numpy()])
