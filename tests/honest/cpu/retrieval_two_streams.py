"""Starts and joins two Python threads in every call.

problem: level3_7_bag_retrieval
"""

import threading

import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim, out):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)
        self.query = nn.Linear(dim, out)
        self.document = nn.Linear(dim, out)

    def side(self, layer, tokens, results, place):
        with torch.no_grad():
            bags = F.embedding_bag(tokens, self.table.weight, mode="mean")
            results[place] = F.normalize(layer(bags), dim=1)

    def forward(self, queries, documents):
        results = [None, None]
        other = threading.Thread(target=self.side, args=(self.document, documents, results, 1))
        other.start()
        self.side(self.query, queries, results, 0)
        other.join()
        return results[0] @ results[1].T
