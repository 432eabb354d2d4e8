# problem: level1_21_embedding
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <cstring>

torch::Tensor embedding_lookup(const torch::Tensor &table, const torch::Tensor &tokens) {
  TORCH_CHECK(table.dim() == 2, "the table must be a matrix");
  TORCH_CHECK(tokens.dtype() == at::kLong, "tokens must be int64 but are ", tokens.dtype());
  auto flat = tokens.contiguous().flatten();
  const auto dim = table.size(1);
  std::vector<int64_t> shape(tokens.sizes().begin(), tokens.sizes().end());
  shape.push_back(dim);
  auto out = torch::empty(shape, table.options());
  const auto *index = flat.data_ptr<int64_t>();
  const auto *from = table.data_ptr<float>();
  auto *to = out.data_ptr<float>();
  const int64_t vocabulary = table.size(0);
  for (int64_t i = 0; i < flat.numel(); i++) {
    TORCH_CHECK_INDEX(index[i] >= 0 && index[i] < vocabulary, "token ", index[i], " out of range");
    std::memcpy(to + i * dim, from + index[i] * dim, dim * sizeof(float));
  }
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("embedding_lookup", &embedding_lookup, "rows of a table", py::arg("table"), py::arg("tokens"));
}
"""

lookup = load_inline(
    name="embedding_memcpy", cpp_sources=source, verbose=True, extra_cflags=["-O2"]
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary: int, dim: int):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        return lookup.embedding_lookup(table=self.table.weight, tokens=tokens)
