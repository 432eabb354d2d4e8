# problem: level1_23_gather_columns
# expected: runtime_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

torch::Tensor gather_columns(torch::Tensor x, torch::Tensor positions, torch::Tensor weight) {
    TORCH_CHECK(positions.scalar_type() == torch::kInt32, "positions must be int32 but are ",
                positions.scalar_type());
    auto out = torch::empty(positions.sizes(), x.options());
    auto in = x.accessor<float, 2>();
    auto index = positions.accessor<int32_t, 2>();
    auto scale = weight.accessor<float, 1>();
    auto result = out.accessor<float, 2>();
    for (int64_t r = 0; r < positions.size(0); ++r)
        for (int64_t p = 0; p < positions.size(1); ++p)
            result[r][p] = in[r][index[r][p]] * scale[p];
    return out;
}
"""

gather = load_inline(
    name="gather_refuses_input",
    cpp_sources=source,
    functions=["gather_columns"],
    verbose=True,
    extra_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, picks: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(picks))

    def forward(self, x, positions):
        return gather.gather_columns(x, positions, self.weight)
