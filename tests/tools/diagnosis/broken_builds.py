"""Candidates that do not build, each for one reason, as models write them.

`python -m tests.tools.diagnosis.broken_builds [NAME ...]` builds them through the trusted builder
and leaves what the compilers said in `tests/data/build_logs/broken/`, over the light headers and,
for those with `full`, over PyTorch's own, where that is something else.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.ipc.build_request import BuildRequest

LOGS = Path(__file__).parents[2] / "data" / "build_logs" / "broken"
ARCHITECTURE = "9.0a"
_LINES = 100
"""Of a log: what follows are the standard library's candidates for an operator."""


@dataclass(frozen=True)
class Broken:
    """One candidate and what its words must hold."""

    cpp: str
    first: str
    """In the first line of the words."""
    line: str
    """The candidate's line that must be quoted with its number; empty: there is none to quote."""
    cuda: str = ""
    also: tuple[str, ...] = ()
    """Elsewhere in the words."""
    cflags: tuple[str, ...] = ()
    cuda_cflags: tuple[str, ...] = ()
    functions: tuple[str, ...] = ("run",)
    full: bool = False

    @property
    def source(self) -> str:
        """The candidate's Python file."""
        cuda = f'\ncuda_source = r"""{self.cuda}"""\n' if self.cuda else ""
        more = ", cuda_sources=cuda_source" if self.cuda else ""
        return f'''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""{self.cpp}"""
{cuda}
kernels = load_inline(
    name="kernels", cpp_sources=cpp_source{more}, functions={list(self.functions)},
    extra_cflags={list(self.cflags)}, extra_cuda_cflags={list(self.cuda_cflags)},
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.run(x)
'''

    @property
    def request(self) -> BuildRequest:
        """What its `load_inline` asks the builder for."""
        return BuildRequest(
            name="kernels",
            cpp_sources=(self.cpp,),
            cuda_sources=(self.cuda,) if self.cuda else (),
            functions=tuple((name, name) for name in self.functions),
            cflags=self.cflags,
            cuda_cflags=self.cuda_cflags,
            with_cuda=bool(self.cuda),
        )


def host(body: str, head: str = "") -> str:
    """C++ with `body` in the loop over the elements."""
    return f"""
#include <torch/extension.h>
#include <vector>
#include <cmath>
{head}
torch::Tensor run(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int64_t n = x.numel();
{body}
  return y;
}}
"""


LOOP = "  for (int64_t i = 0; i < n; ++i) to[i] = from[i] * 2.0f;"
DECLARED = "torch::Tensor run(torch::Tensor x);"


def device(kernel: str, launch: str = "scale<<<(n + 255) / 256, 256>>>(from, to, n);") -> str:
    """CUDA with this kernel and this launch."""
    return f"""
#include <torch/extension.h>
#include <cuda_runtime.h>
{kernel}
torch::Tensor run(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  const float* from = x.data_ptr<float>();
  float* to = y.data_ptr<float>();
  const int n = x.numel();
  {launch}
  return y;
}}
"""


KERNEL = """
__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = BODY;
}
"""


def kernel(body: str, head: str = "") -> str:
    """An elementwise kernel that computes `body`."""
    return head + KERNEL.replace("BODY", body)


BROKEN = {
    "syntax": Broken(
        host("  float s = 2.0f\n" + LOOP), "expected ',' or ';' before 'for'", "for (int64_t i",
        also=("|   float s = 2.0f\n",),
        full=True,
    ),
    "undeclared": Broken(
        host(LOOP.replace("2.0f", "alpha")), "'alpha' was not declared", "from[i] * alpha",
        full=True,
    ),
    "wrong_type": Broken(
        host("  float* p = x.data_ptr<double>();\n" + LOOP), "cannot convert 'double*' to 'float*'",
        "float* p = x.data_ptr<double>()",
    ),
    "missing_header": Broken(
        host(LOOP, "#include <fast_math.hpp>"), "fast_math.hpp: No such file",
        "#include <fast_math.hpp>", also=("include only",),
    ),
    "missing_include": Broken(
        host("  std::regex r(\"a\");\n" + LOOP), "'regex' is not a member of 'std'",
        "std::regex r",
    ),
    "deduction": Broken(
        host("  const int64_t m = std::max(n, 1);\n" + LOOP),
        "no matching function for call to 'max",
        "std::max(n, 1)", also=("deduced conflicting types",), full=True,
    ),
    "deep_deduction": Broken(
        host(
            "  std::vector<std::pair<float, std::string>> v;\n"
            "  struct Row { float key; };\n  std::vector<Row> rows(4);\n"
            "  std::sort(rows.begin(), rows.end());\n" + LOOP,
            "#include <algorithm>\n#include <string>",
        ),
        "no match for 'operator<'", "std::sort(rows.begin(), rows.end())",
    ),
    "overload": Broken(
        host(
            LOOP + "\n  apply(to, n);",
            "static void apply(float* p, int64_t n, float by) { for (int64_t i = 0; i < n; ++i)"
            " p[i] *= by; }",
        ),
        "too few arguments to function", "apply(to, n);",
    ),
    "member_arguments": Broken(
        host(
            LOOP + "\n  Scaler s(2.0f, 3);",
            "struct Scaler { Scaler(float a, int b, int c) {} };",
        ),
        "no matching function for call to 'Scaler::Scaler", "Scaler s(2.0f, 3)",
        also=("candidate expects 3 arguments, 2 provided",),
    ),
    "missing_return": Broken(
        host(LOOP, "static float twice(float v) { v * 2.0f; }"), "no return statement",
        "static float twice", cflags=("-Werror=return-type",),
    ),
    "redefinition": Broken(
        host(LOOP, "static float half(float v) { return v / 2; }\n"
             "static float half(float w) { return w * 0.5f; }"),
        "redefinition of 'float half(float)'", "static float half(float w)",
        also=("previously defined here",),
    ),
    "struct_semicolon": Broken(
        host(LOOP, "struct Tile { int rows; int columns; }"),
        "expected initializer before 'run'", "torch::Tensor run", also=("struct Tile { int rows",),
    ),
    "unbalanced": Broken(
        host("  for (int64_t i = 0; i < n; ++i) {\n    to[i] = from[i];\n"),
        "expected '}' at end of input", "}", also=("to match this '{', line 10",),
    ),
    "pybind_signature": Broken(
        "\n#include <torch/extension.h>\ntorch::Tensor run(torch::Tensor x, float** rows) {\n"
        "  return x;\n}\n",
        "no match for call", "float** rows", also=("takes and returns torch::Tensor",),
    ),
    "function_name": Broken(
        host(LOOP), "'forward' was not declared", "", functions=("forward",), full=True,
        also=("`functions` names it",),
    ),
    "torch_name": Broken(
        host(LOOP + "\n  y = torch::gelu_fast(y);"), "'gelu_fast' is not a member of",
        "torch::gelu_fast(y)",
    ),
    "dispatch": Broken(
        host(
            '  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", ([&] {\n'
            "    scalar_t* p = y.data_ptr<scalar_t>();\n    p[0] = 0;\n  }));\n"
            "  scalar_t last = 0;\n" + LOOP
        ),
        "'scalar_t' was not declared", "scalar_t last = 0",
    ),
    "dispatch_comma": Broken(
        host(
            '  AT_DISPATCH_FLOATING_TYPES(x.scalar_type() "run", [&] {\n'
            "    y.data_ptr<scalar_t>()[0] = 0;\n  });\n" + LOOP
        ),
        "expected ',' or ';' before string constant",
        "AT_DISPATCH_FLOATING_TYPES(x.scalar_type()",
    ),
    "host_flag": Broken(
        host(LOOP), "'-fplugin=fast.so' is not allowed", "", cflags=("-fplugin=fast.so",),
        also=("Leave that flag out",),
    ),
    # CUDA
    "link": Broken(
        DECLARED, "run(at::Tensor)", "", cuda="\n#include <torch/extension.h>\n" + kernel("x[i]"),
        also=("declared but nowhere defined",),
    ),
    "cuda_syntax": Broken(
        DECLARED, "expected a \";\"", "if (i < n)", also=("|   int j = i\n",), cuda=device(
            kernel("x[i]").replace("  if", "  int j = i\n  if")),
    ),
    "cuda_undeclared": Broken(
        DECLARED, 'identifier "width" is undefined', "x[i * width]", cuda=device(
            kernel("x[i * width]")),
    ),
    "cuda_global_value": Broken(
        DECLARED, "must have a void return type", "__global__ float scale",
        cuda=device(kernel("x[i]").replace("void scale", "float scale")),
    ),
    "cuda_too_few_arguments": Broken(
        DECLARED, "too few arguments in function call", "scale<<<(n + 255) / 256, 256>>>(from, to)",
        cuda=device(kernel("x[i]"), "scale<<<(n + 255) / 256, 256>>>(from, to);"),
    ),
    "cuda_shared": Broken(
        DECLARED, "'scale' uses too much shared data", "__shared__ float tile[300][256]",
        cuda=device(kernel("x[i] + tile[n % 300][i % 256]").replace(
            "  if (", "  __shared__ float tile[300][256];\n"
            "  tile[threadIdx.x][n % 256] = x[i];\n  __syncthreads();\n  if (")),
        also=("307,200 bytes, 232,448 max", "no more shared memory"),
    ),
    "cuda_half": Broken(
        DECLARED, "operator", "h * 2.5f", cuda=device(
            kernel("__half2float(h * 2.5f)").replace(
                "  if (", "  __half h = __float2half(x[0]);\n  if ("
            ).replace("__global__", "#include <cuda_fp16.h>\n__global__")),
    ),
    "cuda_template": Broken(
        DECLARED, "no instance of function template", "launch(from, n)", cuda=device(
            kernel("x[i]", "template <typename T> void launch(const T* x, T* y, int n) {}\n"),
            "launch(from, n);"),
    ),
    "cuda_deep": Broken(
        DECLARED, 'no operator "+" matches', "Sum<Row>()(Row{}, Row{})",
        cuda=device(kernel(
            "Sum<Row>()(Row{}, Row{}).v",
            "struct Row { float v; };\ntemplate <typename T> struct Sum {\n"
            "  __device__ T operator()(T a, T b) const { return a + b; }\n};\n")),
        also=("return a + b",),
    ),
    "cuda_brace": Broken(
        DECLARED, "expected a \";\"", "torch::Tensor run(torch::Tensor x) {",
        also=('to match this "{"',), cuda=device(kernel("x[i]").rstrip().removesuffix("}")),
    ),
    "cuda_asm": Broken(
        DECLARED, "Not a name of any known instruction", "", cuda=device(
            kernel("x[i]").replace("  if", '  asm volatile("fastadd.f32 %f1, %f2;");\n  if')),
    ),
    "cuda_flag": Broken(
        DECLARED, "'--use_fast_maths' is not allowed", "", cuda=device(kernel("x[i]")),
        cuda_cflags=("--use_fast_maths",), also=("Leave that flag out",),
    ),
    "cuda_namespace": Broken(
        DECLARED, 'no member "getStream"', "at::cuda::getStream()", cuda=device(
            kernel("x[i]"),
            "scale<<<(n + 255) / 256, 256, 0, at::cuda::getStream()>>>(from, to, n);"),
    ),
}  # fmt: skip


def main(names: list[str]) -> None:
    """Build those (all by default) and write their logs."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for light in (True, False):
            builder = Builder(Path(folder), cuda_arch=ARCHITECTURE, light=light)
            for name, broken in BROKEN.items():
                if (names and name not in names) or not (light or broken.full):
                    continue
                outcome = builder.build(broken.request)
                said = outcome.log if not outcome.ok else "BUILT\n" + outcome.log
                kind = "light" if light else "full"
                said = said.replace(sys.prefix, "/opt/python").replace(sys.base_prefix, "/usr")
                (LOGS / f"{name}.{kind}.txt").write_text("".join(said.splitlines(True)[:_LINES]))
                print(f"{name}: {kind} -> {outcome.headers}, ok={outcome.ok}, "
                      f"{outcome.seconds:.1f} s, {len(said)} bytes", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
