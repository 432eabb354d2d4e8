"""Candidates that do not build, each for one reason, as models write them.

`python -m tests.tools.diagnosis.broken_builds [NAME ...]` builds them through the trusted builder
and leaves what the compilers said in `tests/data/build_logs/broken/`.
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
_LINES = 30
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
        "std::max(n, 1)", also=("deduced conflicting types",),
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
    "member_arguments": Broken(
        host(
            LOOP + "\n  Scaler s(2.0f, 3);",
            "struct Scaler { Scaler(float a, int b, int c) {} };",
        ),
        "no matching function for call to 'Scaler::Scaler", "Scaler s(2.0f, 3)",
        also=("candidate expects 3 arguments, 2 provided",),
    ),
    "redefinition": Broken(
        host(LOOP, "static float half(float v) { return v / 2; }\n"
             "static float half(float w) { return w * 0.5f; }"),
        "redefinition of 'float half(float)'", "static float half(float w)",
        also=("previously defined here, line 9: static float half",),
    ),
    "pybind_signature": Broken(
        "\n#include <torch/extension.h>\ntorch::Tensor run(torch::Tensor x, float** rows) {\n"
        "  return x;\n}\n",
        "no match for call", "float** rows", also=("takes and returns torch::Tensor",),
    ),
    "function_name": Broken(
        host(LOOP), "'forward' was not declared", "", functions=("forward",),
        also=("`functions` names it",),
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
    "cuda_global_value": Broken(
        DECLARED, "must have a void return type", "__global__ float scale",
        cuda=device(kernel("x[i]").replace("void scale", "float scale")),
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
}  # fmt: skip


def main(names: list[str]) -> None:
    """Build those (all by default) and write their logs."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(Path(folder), cuda_arch=ARCHITECTURE)
        for name, broken in BROKEN.items():
            if names and name not in names:
                continue
            outcome = builder.build(broken.request)
            said = outcome.log if not outcome.ok else "BUILT\n" + outcome.log
            said = said.replace(sys.prefix, "/opt/python").replace(sys.base_prefix, "/usr")
            (LOGS / f"{name}.txt").write_text("".join(said.splitlines(True)[:_LINES]))
            print(f"{name}: {outcome.seconds:.1f} s, {len(said)} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
