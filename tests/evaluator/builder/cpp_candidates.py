# ruff: noqa: E501 (models write long lines)
"""C++ candidates as language models write them: each module builds at import and can be compared.

Every text defines `inputs()`, `reference(*inputs)` and `candidate(*inputs)`.
"""

from tests.evaluator.builder.cpp_interfaces import INTERFACES

CANDIDATES: dict[str, str] = {**INTERFACES}

CANDIDATES["several_outputs"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
std::vector<torch::Tensor> stats(torch::Tensor x, std::vector<int64_t> shape) {
  auto v = x.view(shape);
  return {v.mean(1), v.sum(-1, true), std::get<0>(v.max(1)), v.reshape({-1}), v.transpose(0, 1)};
}
std::tuple<torch::Tensor, int64_t, double, std::string, bool> mixed(torch::Tensor x, std::string s) {
  return std::make_tuple(x.t().contiguous(), x.numel(), x[0][0].item<double>(), s + "!", x.is_cuda());
}
"""
ext = load_inline(name="many", cpp_sources=[source], functions=["stats", "mixed"])
inputs = lambda: (torch.randn(4, 6),)
def reference(x):
    v = x.view(6, 4)
    return (v.mean(1), v.sum(-1, keepdim=True), v.max(1)[0], v.reshape(-1), v.T,
            x.T, 24, x[0, 0].item(), "hi!", False)
candidate = lambda x: (*ext.stats(x, [6, 4]), *ext.mixed(x, "hi"))
'''

CANDIDATES["matmul_and_epilogue"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/torch.h>
#include <torch/extension.h>

torch::Tensor linear_relu(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
  auto out = torch::addmm(b, x, w.t());
  float* p = out.data_ptr<float>();
  auto n = out.numel();
  for (int64_t i = 0; i < n; ++i) if (p[i] < 0) p[i] = 0;
  out.mul_(0.5);
  out += 1;
  return torch::clamp(out, 0.0, 3.0);
}
"""
ext = load_inline(name="linear_relu_ext", cpp_sources=source, functions=["linear_relu"], extra_cflags=["-O3"])
inputs = lambda: (torch.randn(9, 16), torch.randn(8, 16), torch.randn(8))
reference = lambda x, w, b: (torch.relu(torch.nn.functional.linear(x, w, b)) * 0.5 + 1).clamp(0, 3)
candidate = ext.linear_relu
'''

CANDIDATES["integers_and_masks"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
torch::Tensor embed(torch::Tensor table, torch::Tensor index) {
  auto idx = index.to(torch::kInt64).contiguous();
  auto opts = torch::TensorOptions().dtype(table.scalar_type()).device(table.device()).requires_grad(false);
  auto out = torch::full({idx.size(0), table.size(1)}, -1.0, opts);
  const int64_t* ip = idx.data_ptr<int64_t>();
  for (int64_t i = 0; i < idx.size(0); i++) {
    TORCH_CHECK_INDEX(ip[i] >= 0 && ip[i] < table.size(0), "index ", ip[i], " out of range");
    out[i].copy_(table[ip[i]]);
  }
  return torch::where(out > 0, out, torch::zeros_like(out));
}
torch::Tensor count(torch::Tensor x) { return (x == 3).sum().to(torch::kLong); }
"""
ext = load_inline(name="embedding", cpp_sources=source, functions=["embed", "count"])
inputs = lambda: (torch.randn(10, 4), torch.randint(0, 10, (7,), dtype=torch.int32))
reference = lambda t, i: (torch.relu(t[i.long()]), (i == 3).sum())
candidate = lambda t, i: (ext.embed(t, i), ext.count(i))
'''

CANDIDATES["cat_and_pad"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
using torch::Tensor;
Tensor join(std::vector<Tensor> all) {
  Tensor first = torch::cat(all, 1);
  Tensor second = torch::stack({all[0], all[0]});
  Tensor third = first.slice(1, 0, 3).unsqueeze(0);
  auto chunks = first.chunk(2, 0);
  std::cout << "";
  return torch::cat({second.flatten(), third.flatten(), chunks[0].flatten(), torch::ones({2})}, 0);
}
void fill(Tensor& x, float v) { x.fill_(v); }
"""
ext = load_inline(name="joiner", cpp_sources=source, functions=["join", "fill"])
inputs = lambda: (torch.randn(4, 3), torch.randn(4, 2))
def reference(a, b):
    first = torch.cat([a, b], 1)
    joined = torch.cat([torch.stack([a, a]).flatten(), first[:, :3].flatten(), first[:2].flatten(), torch.ones(2)])
    return joined, torch.full((3,), 2.5)
def candidate(a, b):
    x = torch.zeros(3)
    ext.fill(x, 2.5)
    return ext.join([a, b]), x
'''

CANDIDATES["convolution_then_loop"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
at::Tensor conv_bias_swish(at::Tensor x, at::Tensor w, c10::optional<at::Tensor> b, std::vector<int64_t> stride, int64_t pad) {
  auto y = at::conv2d(x, w, b, stride, {pad, pad});
  y = y.contiguous();
  float* p = y.data_ptr<float>();
  at::parallel_for(0, y.numel(), 1024, [p](int64_t s, int64_t e) {
    for (int64_t i = s; i < e; ++i) p[i] = p[i] / (1.0f + std::exp(-p[i]));
  });
  torch::NoGradGuard no_grad;
  return y;
}
"""
ext = load_inline(name="conv_swish", cpp_sources=source, functions=["conv_bias_swish"],
                  extra_cflags=["-O3", "-fopenmp", "-funroll-loops"])
inputs = lambda: (torch.randn(2, 3, 9, 9), torch.randn(4, 3, 3, 3), torch.randn(4))
reference = lambda x, w, b: torch.nn.functional.silu(torch.nn.functional.conv2d(x, w, b, [2, 2], 1))
candidate = lambda x, w, b: ext.conv_bias_swish(x, w, b, [2, 2], 1)
'''

CANDIDATES["library_calls_less_usual"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
std::vector<torch::Tensor> several(torch::Tensor a, torch::Tensor b) {
  auto product = torch::einsum("bij,bjk->bik", {a, b});
  auto sum = torch::baddbmm(product, a, b, 1.0, 0.5);
  return {sum, sum.var(2), sum.var(1, false, true), product.flip({1, 2}), product.to(torch::kHalf),
          product.to(torch::kCPU)};
}
template <typename scalar_t>
void doubled(torch::PackedTensorAccessor<scalar_t, 2, torch::DefaultPtrTraits, size_t> x) {
  for (size_t i = 0; i < x.size(0); i++)
    for (size_t j = 0; j < x.size(1); j++) x[i][j] *= 2;
}
torch::Tensor twice(torch::Tensor x) {
  auto y = x.clone();
  AT_DISPATCH_FLOATING_TYPES_AND4(at::kHalf, at::kBFloat16, at::kInt, at::kLong, y.scalar_type(), "twice", [&] {
    doubled<scalar_t>(y.packed_accessor<scalar_t, 2, torch::DefaultPtrTraits, size_t>());
  });
  return y;
}
"""
ext = load_inline(name="less_usual", cpp_sources=source, functions=["several", "twice"])
inputs = lambda: (torch.randn(3, 4, 5), torch.randn(3, 5, 6))
def reference(a, b):
    product = a @ b
    total = 1.5 * product
    return (total, total.var(2), total.var(1, unbiased=False, keepdim=True), product.flip(1, 2),
            product.half(), product, 2 * a[0], 2 * (a[0] * 9).int())
candidate = lambda a, b: (*ext.several(a, b), ext.twice(a[0]), ext.twice((a[0] * 9).int()))
'''

CANDIDATES["messages_without_streams"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>

torch::Tensor refuse(torch::Tensor x) {
  TORCH_CHECK(false, "sizes ", x.sizes(), " of ", x.dtype(), ", ", x.scalar_type(), " on ",
              x.device(), ' ', 0.5, " ", 1e6, " ", 1.23456789f, " ", true, " ", x.dim(), "!");
}
"""
lean = load_inline(name="lean_messages", cpp_sources=source, functions=["refuse"])
streams = load_inline(name="stream_messages", cpp_sources=source + "// std::ostringstream\\\\n",
                      functions=["refuse"])

def said(extension, x):
    try:
        extension.refuse(x)
    except RuntimeError as error:
        return torch.tensor(list(str(error).partition("\\\\n")[0].encode()))

inputs = lambda: (torch.randn(2, 3),)
reference = lambda x: said(streams, x)
candidate = lambda x: said(lean, x)
'''
