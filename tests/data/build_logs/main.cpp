#include <torch/csrc/stable/tensor.h>
#include <vector>
#include <algorithm>
#include <map>
#include <string>
using torch::stable::Tensor;

Tensor gelu_forward(Tensor x, double alpha) {
  auto y = torch::stable::empty_like(x);
  const float* p = static_cast<const float*>(x.data_ptr());
  float* q = static_cast<float*>(y.data_ptr());
  int64_t n = x.numell();
  for (int64_t i = 0; i < n; ++i) {
    q[i] = tanhf(p[i]) * scale;
  }
  std::vector<std::map<std::string, int>> v;
  std::sort(v.begin(), v.end(), [](int a, int b) { return a < b; });
  return y
}
