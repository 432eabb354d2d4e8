# problem: level1_13_cross_entropy
# expected: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <cmath>
#include <algorithm>

torch::Tensor cross_entropy(torch::Tensor logits, torch::Tensor labels, torch::Tensor weights,
                            double smoothing) {
    TORCH_CHECK(labels.scalar_type() == torch::kLong, "labels must be int64");
    TORCH_CHECK(logits.size(0) == labels.size(0), "batch of ", logits.size(0), " and ", labels.size(0));
    const int64_t batch = logits.size(0);
    const int64_t classes = logits.size(1);
    auto loss = torch::empty({batch}, logits.options());
    const float* x = logits.data_ptr<float>();
    const int64_t* y = labels.data_ptr<int64_t>();
    const float* w = weights.data_ptr<float>();
    float* out = loss.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t b = 0; b < batch; ++b) {
        const float* row = x + b * classes;
        float top = row[0];
        for (int64_t c = 1; c < classes; ++c) top = std::max(top, row[c]);
        double sum = 0.0;
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - top);
        const double log_sum = std::log(sum) + top;
        double smooth = 0.0;
        for (int64_t c = 0; c < classes; ++c) smooth += w[c] * (log_sum - row[c]);
        const int64_t label = y[b];
        const double hard = w[label] * (log_sum - row[label]);
        out[b] = static_cast<float>((1.0 - smoothing) * hard + smoothing / classes * smooth);
    }
    return loss;
}
"""

ext = load_inline(
    name="cross_entropy_labels",
    cpp_sources=source,
    functions=["cross_entropy"],
    verbose=True,
    extra_cflags=["-O3", "-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, classes: int, smoothing: float):
        super().__init__()
        self.smoothing = smoothing
        self.register_buffer("class_weights", torch.linspace(0.5, 1.5, classes))

    def forward(self, logits, labels):
        return ext.cross_entropy(logits, labels, self.class_weights, self.smoothing)
