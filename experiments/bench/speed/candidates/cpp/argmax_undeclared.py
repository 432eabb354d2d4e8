# problem: level1_9_argmax
# expected: build_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

torch::Tensor argmax_rows(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options().dtype(torch::kLong));
    const float* in = x.data_ptr<float>();
    int64_t* o = out.data_ptr<int64_t>();
    const int64_t cols = x.size(1);
    for (int64_t r = 0; r < x.size(0); ++r) {
        int64_t best = 0;
        for (int64_t c = 1; c < cols; ++c)
            if (in[r * columns + c] > in[r * cols + best]) best = c;
        o[r] = best;
    }
    return out;
}
"""

argmax = load_inline(
    name="argmax_undeclared",
    cpp_sources=source,
    functions=["argmax_rows"],
    verbose=True,
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return argmax.argmax_rows(x)
