# ruff: noqa: E501 (models write long lines)
"""C++ candidates as language models write them: each module builds at import and can be compared.

Every text defines `inputs()`, `reference(*inputs)` and `candidate(*inputs)`.
"""

HEAD = "import torch\nfrom torch.utils.cpp_extension import load, load_inline\n"
"""What each of them begins with."""
CANDIDATES: dict[str, str] = {}

CANDIDATES["own_pybind_module"] = '''
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
  m.def("twice", [](torch::Tensor x) { return x + x; });
}
"""
ext = load_inline(name="own_module", cpp_sources=[source])
inputs = lambda: (torch.randn(5, 7), torch.randn(7))
reference = lambda x, b: (x * 2 + b, torch.relu(x * 3), x + x, "scaling")
candidate = lambda x, b: (ext.scale_add(x, bias=b), ext.scale_add(x, 3.0, relu=True), ext.twice(x), ext.__doc__)
'''

CANDIDATES["dispatch_types"] = '''
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

CANDIDATES["parallel_loops"] = '''
source = """
#include <torch/extension.h>
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
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
at::Tensor swish(const at::Tensor& x, c10::optional<at::Tensor> bias) {
  auto y = (bias.has_value() ? x + *bias : x).contiguous();
  float* p = y.data_ptr<float>();
  at::parallel_for(0, y.numel(), 64, [p](int64_t s, int64_t e) {
    for (int64_t i = s; i < e; ++i) p[i] = p[i] / (1.0f + std::exp(-p[i]));
  });
  return y;
}
"""
ext = load_inline(name="parallel_loops", cpp_sources=source, functions=["pool", "swish"],
                  extra_cflags=["-O3", "-fopenmp", "-funroll-loops"])
inputs = lambda: (torch.randn(2, 3, 8, 8), torch.randn(8))
reference = lambda x, b: (torch.nn.functional.max_pool2d(x, 2), torch.nn.functional.silu(x + b))
candidate = lambda x, b: (ext.pool(x, 2), ext.swish(x, b))
'''

CANDIDATES["declaration_and_definition"] = '''
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
candidate = lambda x: (ext.cumulative(x, 0), ext.cumulative(x, 1))
'''

CANDIDATES["old_style_checks"] = '''
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

CANDIDATES["errors_become_pythons"] = '''
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

CANDIDATES["a_failed_build_is_pytorchs_error"] = """
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

CANDIDATES["load_from_files"] = """
import pathlib, tempfile
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

CANDIDATES["literals_and_ranges"] = '''
source = """
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
template <typename T> using acc = at::acc_type<T, false>;
std::vector<torch::Tensor> f(torch::Tensor x) {
  std::cout << "";
  acc<float> total = 0;
  for (auto i : c10::irange(x.numel())) total += x.data_ptr<float>()[i];
  return {torch::full({1}, total), torch::full({2}, 7), torch::full({2}, true), torch::full({2}, 7, x.options())};
}
"""
ext = load_inline(name="literals", cpp_sources=source, functions=["f"])
inputs = lambda: (torch.arange(8.0),)
reference = lambda x: [torch.tensor([28.0]), torch.tensor([7, 7]), torch.tensor([True, True]), torch.full((2,), 7.0)]
candidate = ext.f
'''

CANDIDATES["arguments_as_pybind_takes_them"] = '''
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
std::string of(double) { return "double"; }
std::string of(int64_t) { return "int64_t"; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("sum", &sum);
  m.def("product", &product);
  m.def("twice", &twice);
  m.def("small", &small);
  m.def("flag", &flag);
  m.def("text", &text);
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
        *["refused"] * 7,
        True, False, True, "x", "x", "double", "int64_t", "int64_t",
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
        refused(ext.small, 128),
        ext.flag(1), ext.flag(None), ext.flag([1] == [1]), ext.text("x"), ext.text(b"x"),
        ext.of(2.0), ext.of(2), ext.of(True),
    )
'''

CANDIDATES["functions_of_tensors"] = '''
source = """
#include <torch/torch.h>
#include <torch/extension.h>
using torch::Tensor;

std::vector<torch::Tensor> stats(torch::Tensor x, std::vector<int64_t> shape) {
  auto v = x.view(shape);
  return {v.mean(1), v.sum(-1, true), v.amax({1}), v.reshape({-1}), v.transpose(0, 1)};
}
std::tuple<torch::Tensor, int64_t, double, std::string, bool> mixed(torch::Tensor x, std::string s) {
  return std::make_tuple(x.t().contiguous(), x.numel(), x[0][0].item<double>(), s + "!", x.is_cuda());
}
torch::Tensor linear_relu(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
  auto out = torch::addmm(b, x, w.t());
  float* p = out.data_ptr<float>();
  auto n = out.numel();
  for (int64_t i = 0; i < n; ++i) if (p[i] < 0) p[i] = 0;
  out.mul_(0.5);
  out += 1;
  return torch::clamp(out, 0.0, 3.0);
}
torch::Tensor embed(torch::Tensor table, torch::Tensor index) {
  auto idx = index.to(torch::kInt64).contiguous();
  auto opts = torch::TensorOptions().dtype(table.scalar_type()).device(table.device()).requires_grad(false);
  auto out = torch::full({idx.size(0), table.size(1)}, -1.0, opts);
  const int64_t* ip = idx.data_ptr<int64_t>();
  for (int64_t i = 0; i < idx.size(0); i++) {
    TORCH_CHECK_INDEX(ip[i] >= 0 && ip[i] < table.size(0), "index ", ip[i], " out of range");
    out[i].copy_(table[ip[i]]);
  }
  return out;
}
std::vector<Tensor> views(Tensor x) {
  return {x.slice(1, 0, 2).unsqueeze(0), x.permute({1, 0}).flatten(), x[0].expand({2, 3}), x.squeeze()};
}
void fill(Tensor& x, float v) { x.fill_(v); }
"""
functions = ["stats", "mixed", "linear_relu", "embed", "views", "fill"]
ext = load_inline(name="many", cpp_sources=[source], functions=functions, extra_cflags=["-O3"])
inputs = lambda: (torch.randn(6, 3), torch.randn(8, 3), torch.randn(8), torch.randint(0, 6, (7,), dtype=torch.int32))
def reference(x, w, b, i):
    v = x.view(9, 2)
    return (v.mean(1), v.sum(-1, keepdim=True), v.max(1)[0], v.reshape(-1), v.T,
            x.T, 18, x[0, 0].item(), "hi!", False,
            (torch.relu(torch.nn.functional.linear(x, w, b)) * 0.5 + 1).clamp(0, 3), x[i.long()],
            x[:, :2][None], x.T.flatten(), x[0].expand(2, 3), x, torch.full((3,), 2.5))
def candidate(x, w, b, i):
    filled = torch.zeros(3)
    ext.fill(filled, 2.5)
    return (*ext.stats(x, [9, 2]), *ext.mixed(x, "hi"), ext.linear_relu(x, w, b), ext.embed(x, i),
            *ext.views(x), filled)
'''

CANDIDATES["messages_without_streams"] = '''
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
