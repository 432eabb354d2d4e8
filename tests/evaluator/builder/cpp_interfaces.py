# ruff: noqa: E501 (models write long lines)
"""C++ candidates for what lies around a kernel: bindings, checks, errors, types, files.

Every text defines `inputs()`, `reference(*inputs)` and `candidate(*inputs)`.
"""

INTERFACES: dict[str, str] = {}

INTERFACES["own_pybind_module"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
namespace py = pybind11;
using namespace torch;

static Tensor scale_add(Tensor x, double scale, c10::optional<Tensor> bias, bool relu) {
  Tensor y = x * scale;
  if (bias.has_value()) y = y + bias.value();
  return relu ? at::relu(y) : y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "scaling";
  m.def("scale_add", &scale_add, "scale and add", py::arg("x"), py::arg("scale") = 2.0,
        py::arg("bias") = py::none(), py::arg("relu") = false);
  m.def("twice", [](torch::Tensor x) { return x + x; }, py::call_guard<py::gil_scoped_release>());
}
"""
ext = load_inline(name="own_module", cpp_sources=[source])
inputs = lambda: (torch.randn(5, 7), torch.randn(7))
reference = lambda x, b: (x * 2 + b, torch.relu(x * 3), x + x, "scaling")
candidate = lambda x, b: (ext.scale_add(x, bias=b), ext.scale_add(x, 3.0, relu=True), ext.twice(x), ext.__doc__)
'''

INTERFACES["dispatch_types"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
template <typename scalar_t>
void gelu_kernel(const scalar_t* __restrict__ in, scalar_t* __restrict__ out, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float v = static_cast<float>(in[i]);
    out[i] = static_cast<scalar_t>(0.5f * v * (1.0f + std::erf(v * (float)M_SQRT1_2)));
  }
}

torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "gelu", ([&] {
    gelu_kernel<scalar_t>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
  }));
  return y;
}
"""
ext = load_inline(name="gelu_types", cpp_sources=source, functions="gelu", extra_cflags=["-O2"])
inputs = lambda: (torch.randn(100), torch.randn(100).half(), torch.randn(100).double())
reference = lambda *xs: tuple(torch.nn.functional.gelu(x) for x in xs)
candidate = lambda *xs: tuple(ext.gelu(x) for x in xs)
tolerance = 2e-3
'''

INTERFACES["accessors"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
torch::Tensor pool(torch::Tensor x, int k) {
  auto B = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  auto out = torch::empty({B, C, H / k, W / k}, torch::dtype(x.dtype()).device(x.device()));
  auto a = x.accessor<float, 4>();
  auto o = out.accessor<float, 4>();
  #pragma omp parallel for collapse(2)
  for (int64_t b = 0; b < B; b++)
    for (int64_t c = 0; c < C; c++)
      for (int64_t i = 0; i < H / k; i++)
        for (int64_t j = 0; j < W / k; j++) {
          float best = a[b][c][i * k][j * k];
          for (int di = 0; di < k; di++)
            for (int dj = 0; dj < k; dj++) best = std::max(best, a[b][c][i * k + di][j * k + dj]);
          o[b][c][i][j] = best;
        }
  return out;
}
"""
ext = load_inline(name="pooling", cpp_sources=source, functions=["pool"], extra_cflags=["-O3", "-fopenmp"])
inputs = lambda: (torch.randn(2, 3, 8, 8),)
reference = lambda x: torch.nn.functional.max_pool2d(x, 2)
candidate = lambda x: ext.pool(x, 2)
'''

INTERFACES["declaration_and_definition"] = '''
import torch
from torch.utils.cpp_extension import load_inline

declaration = "torch::Tensor cumulative(torch::Tensor x, int64_t dim);"
definition = """
torch::Tensor cumulative(torch::Tensor x, int64_t dim) {
  TORCH_CHECK(x.ndimension() == 2 && dim >= 0 && dim < 2, "bad dim ", dim);
  auto y = x.clone();
  auto* p = y.mutable_data_ptr<float>();
  auto s0 = y.stride(0), s1 = y.stride(1);
  auto n = y.size(dim), m = y.size(1 - dim);
  auto along = dim == 0 ? s0 : s1, across = dim == 0 ? s1 : s0;
  for (int64_t j = 0; j < m; j++)
    for (int64_t i = 1; i < n; i++) p[i * along + j * across] += p[(i - 1) * along + j * across];
  return y;
}
"""
ext = load_inline("cumulative_ext", [declaration, definition], functions=["cumulative"])
inputs = lambda: (torch.randn(11, 5),)
reference = lambda x: (x.cumsum(0), x.cumsum(1))
candidate = lambda x: (ext.cumulative(x, 0), ext.cumulative(x, dim=1)) if False else (
    ext.cumulative(x, 0), ext.cumulative(x, 1))
'''

INTERFACES["old_style_checks"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#define CHECK_CPU(x) TORCH_CHECK(!x.type().is_cuda(), #x " must be a CPU tensor")
#define CHECK_CONTIGUOUS(x) AT_ASSERTM(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CPU(x); CHECK_CONTIGUOUS(x)
torch::Tensor difference(torch::Tensor a, torch::Tensor b) {
  CHECK_INPUT(a); CHECK_INPUT(b);
  TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ: ", a.sizes(), " and ", b.sizes());
  auto result = torch::zeros(a.sizes(), a.options());
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "difference", [&] {
    auto x = a.data<scalar_t>(), y = b.data<scalar_t>();
    auto out = result.data_ptr<scalar_t>();
    for (int64_t i = 0; i < a.numel(); i++) out[i] = x[i] - y[i];
  });
  return result;
}
"""
ext = load_inline(name="difference_ext", cpp_sources=source, functions=["difference"], with_cuda=False)
inputs = lambda: (torch.randn(3, 3), torch.randn(3, 3))
reference = lambda a, b: a - b
candidate = ext.difference
'''

INTERFACES["errors_become_pythons"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
torch::Tensor check(torch::Tensor x, int64_t n) {
  TORCH_CHECK(n > 0, "n must be positive, got ", n, " for ", x.sizes());
  TORCH_CHECK(n != 7);
  TORCH_CHECK_VALUE(n != 8, "eight");
  if (n == 9) throw std::invalid_argument("nine");
  if (n == 10) return x.view({1000, 1000});
  if (n == 11) return torch::empty_like(x.data_ptr<double>() ? x : x);
  if (n == 12) x.size(5);
  return x;
}
"""
ext = load_inline(name="checks", cpp_sources=source, functions=["check"])
inputs = lambda: (torch.randn(2, 3),)

def told(*args, **kwargs):
    try:
        ext.check(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "nothing"

def candidate(x):
    return [told(x, n) for n in (0, 7, 8, 9, 10, 11, 12, 13)] + [
        told(x, 1.5), told(x), told(None, 1), told(x, 1, 2), told(x, n=1)]

def reference(x):
    wrong = "TypeError: check(): incompatible function arguments. The following argument types are supported:"
    return ["RuntimeError: n must be positive, got 0 for [2, 3]",
            "RuntimeError: Expected n != 7 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)",
            "ValueError: eight", "RuntimeError: nine",
            "RuntimeError: shape '[1000, 1000]' is invalid for input of size 6",
            "RuntimeError: expected scalar type Double but found Float",
            "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 5)",
            "nothing", wrong, wrong, wrong, wrong, wrong]
'''

INTERFACES["a_failed_build_is_pytorchs_error"] = """
import torch
from torch.utils.cpp_extension import load_inline

def failing(**changes):
    options = dict(name="broken", cpp_sources="torch::Tensor f(torch::Tensor x) { return x }", functions=["f"], verbose=True)
    try:
        load_inline(**(options | changes))
    except RuntimeError as error:
        return str(error)

inputs = lambda: ()
def candidate():
    message = failing()
    return (message.splitlines()[0], "expected ';' before '}' token" in message,
            failing(extra_cflags=["-fplugin=x"]))
def reference():
    return ("Error building extension 'broken':", True,
            "Error building extension 'broken':\\nerror: the flag '-fplugin=x' is not allowed\\n")
"""

INTERFACES["load_from_files"] = """
import pathlib, tempfile
import torch
from torch.utils.cpp_extension import load, load_inline

folder = pathlib.Path(tempfile.mkdtemp())
for each in ("inc", "inc/detail", "src"):
    (folder / each).mkdir()
(folder / "inc" / "factor.h").write_text('#pragma once\\n#include "detail/number.h"\\nconstexpr float factor = number;\\n')
(folder / "inc" / "detail" / "number.h").write_text('#pragma once\\n#include "three.h"\\nconstexpr float number = three;\\n')
(folder / "inc" / "detail" / "three.h").write_text("#pragma once\\nconstexpr float three = 3;\\n")
(folder / "kernel.h").write_text('#include <torch/extension.h>\\n#include <factor.h>\\nat::Tensor scaled(at::Tensor x);\\n')
(folder / "src" / "part.cpp").write_text("static at::Tensor part(at::Tensor x) { return x * factor; }\\n")
(folder / "src" / "kernel.cpp").write_text('#include "../kernel.h"\\n#include "part.cpp"\\nat::Tensor scaled(at::Tensor x) { return part(x); }\\n')
(folder / "binding.cpp").write_text('#include "kernel.h"\\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled); }\\n')
ext = load(name="from_files", sources=[str(folder / "binding.cpp"), folder / "src" / "kernel.cpp"],
           extra_include_paths=[str(folder / "inc")], extra_cflags=["-O2"], verbose=True)
source = "#include <factor.h>\\nat::Tensor scaled(at::Tensor x) { return x * factor; }"
inline = load_inline("with_files", source, functions=["scaled"], extra_include_paths=str(folder / "inc"))
inputs = lambda: (torch.randn(4),)
reference = lambda x: (x * 3, x * 3)
candidate = lambda x: (ext.scaled(x), inline.scaled(x))
"""

INTERFACES["literals_and_ranges"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
template <typename T> using acc = at::acc_type<T, false>;
std::vector<torch::Tensor> f(torch::Tensor x) {
  acc<float> total = 0;
  for (auto i : c10::irange(x.numel())) total += x.data_ptr<float>()[i];
  return {torch::tensor({1.5, 2.5}), torch::tensor({1, 2, 3}), torch::tensor(true), torch::tensor(0.5f),
          torch::tensor({total}, torch::kFloat64), torch::arange(5), torch::full({2}, 7, x.options())};
}
"""
ext = load_inline(name="literals", cpp_sources=source, functions=["f"])
inputs = lambda: (torch.arange(8.0),)
reference = lambda x: [torch.tensor([1.5, 2.5]), torch.tensor([1, 2, 3]), torch.tensor(True), torch.tensor(0.5),
                       torch.tensor([28.0], dtype=torch.float64), torch.arange(5), torch.full((2,), 7.0)]
candidate = ext.f
'''

INTERFACES["arguments_as_pybind_takes_them"] = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#if !defined(TORCH_VERSION_MAJOR) || TORCH_VERSION_MAJOR < 2
#error "an old PyTorch"
#endif
torch::Tensor sum(std::vector<torch::Tensor> all) {
  auto total = torch::zeros_like(all.at(0));
  for (auto& each : all) total += each;
  return total;
}
int64_t product(const std::vector<int64_t>& all) {
  int64_t result = 1;
  for (auto each : all) result *= each;
  return result;
}
uint64_t twice(uint64_t x) { return 2 * x; }
int8_t small(int8_t x) { return x; }
bool flag(bool x) { return x; }
std::string text(std::string x) { return x; }
int64_t shape(at::IntArrayRef all) { return static_cast<int64_t>(all.size()); }
std::string of(double) { return "double"; }
std::string of(int64_t) { return "int64_t"; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sum", &sum);
  m.def("product", &product);
  m.def("twice", &twice);
  m.def("small", &small);
  m.def("flag", &flag);
  m.def("text", &text);
  m.def("shape", &shape);
  m.def("of", static_cast<std::string (*)(double)>(&of));
  m.def("of", static_cast<std::string (*)(int64_t)>(&of));
}
"""
ext = load_inline(name="arguments", cpp_sources=[source])

def refused(function, *arguments):
    try:
        return function(*arguments)
    except TypeError:
        return "refused"

def broken():
    yield 2
    raise KeyError("broken")

def said(function, argument):
    try:
        return function(argument)
    except KeyError as error:
        return str(error)

inputs = lambda: (torch.randn(4, 3), torch.randn(4, 3))
def reference(a, b):
    return (
        a + b, a + b, a + b, 12, 6, 6, 6, 6, 2**64 - 2, "'broken'",
        *["refused"] * 9,
        True, False, True, "x", "x", 2, 3, "double", "int64_t", "int64_t",
    )
def candidate(a, b):
    parameters = torch.nn.ParameterList([torch.nn.Parameter(x, requires_grad=False) for x in (a, b)])
    return (
        ext.sum(parameters), ext.sum(torch.nn.ParameterList([a, b])), ext.sum(x for x in (a, b)),
        ext.product(a.shape), ext.product({1, 2, 3}), ext.product(range(1, 4)),
        ext.product({2: 0, 3: 0}.keys()), ext.product(map(int, "123")), ext.twice(2**63 - 1),
        said(ext.product, broken()),
        refused(ext.product, "123"), refused(ext.product, b"123"), refused(ext.product, 3),
        refused(ext.product, [1.5]), refused(ext.twice, -1), refused(ext.twice, 2**64),
        refused(ext.small, 128), refused(ext.shape, range(3)), refused(ext.shape, [1.0]),
        ext.flag(1), ext.flag(None), ext.flag([1] == [1]), ext.text("x"), ext.text(b"x"),
        ext.shape((1, 2)), ext.shape([1, 2, 3]), ext.of(2.0), ext.of(2), ext.of(True),
    )
'''
