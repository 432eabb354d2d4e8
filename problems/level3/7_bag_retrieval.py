import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Scores of documents for a query: bags of tokens, averaged, projected, compared."""

    def __init__(self, vocabulary: int, dim: int, out: int):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)
        self.query = nn.Linear(dim, out)
        self.document = nn.Linear(dim, out)

    def forward(self, queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        """queries, documents: (count, tokens), int64; the result: (queries, documents)."""
        q = self.query(torch.mean(self.table(queries), dim=1))
        d = self.document(torch.mean(self.table(documents), dim=1))
        return F.normalize(q, dim=1) @ F.normalize(d, dim=1).T


CATEGORY = "network"
CPU_SIZES = {
    "vocabulary": 5000,
    "dim": 256,
    "out": 96,
    "queries": 500,
    "documents": 2000,
    "tokens": 12,
}

vocabulary = 50000
dim = 768
out = 512
queries = 4096
documents = 8192
tokens = 24


def get_inputs():
    return [
        torch.randint(0, vocabulary, (queries, tokens)),
        torch.randint(0, vocabulary, (documents, tokens)),
    ]


def get_init_inputs():
    return [vocabulary, dim, out]
