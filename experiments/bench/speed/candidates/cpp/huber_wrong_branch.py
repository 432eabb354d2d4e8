# problem: level1_12_huber_loss
# expected: incorrect
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

huber_source = """
#include <torch/extension.h>
#include <cmath>

torch::Tensor huber_loss(torch::Tensor prediction, torch::Tensor target, double delta) {
    TORCH_CHECK(prediction.sizes() == target.sizes(), "shapes differ");
    const int64_t batch = prediction.size(0), features = prediction.size(1);
    auto loss = torch::empty({batch}, prediction.options());
    const float* p = prediction.data_ptr<float>();
    const float* t = target.data_ptr<float>();
    float* out = loss.data_ptr<float>();
    const float d = static_cast<float>(delta);
    #pragma omp parallel for
    for (int64_t b = 0; b < batch; ++b) {
        float sum = 0.0f;
        for (int64_t f = 0; f < features; ++f) {
            const float e = std::fabs(p[b * features + f] - t[b * features + f]);
            // The square of the small errors has lost its half.
            sum += e <= d ? e * e : d * (e - 0.5f * d);
        }
        out[b] = sum / features;
    }
    return loss;
}
"""

huber = load_inline(
    name="huber_wrong_branch",
    cpp_sources=huber_source,
    functions=["huber_loss"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        return huber.huber_loss(prediction, target, self.delta)
