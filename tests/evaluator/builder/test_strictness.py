"""What PyTorch refuses is refused over the light headers too, or left to PyTorch's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.builder.builder import Builder
from evaluator.builder.sources import arrange
from evaluator.builder.toolchain import Torch
from evaluator.builder.workshop import Attempt, Flags
from evaluator.ipc.build_request import BuildRequest
from tests.nvcc import needs_nvcc


def over_light_headers(
    builder: Builder, body: str, cuda: str = "", *, light: bool = True
) -> Attempt:
    """What becomes of sources before PyTorch's own headers are tried; not `light`: over those."""
    request = BuildRequest("strict", (body,), (cuda,) if cuda else ())
    workshop = builder._workshop(with_cuda=bool(cuda))
    workshop.enclosure.prepare()
    flags = Flags(host=(), device=(), link=())
    return workshop.attempt("strict", arrange(request), flags, light=light, timeout_s=600)


def in_function(statement: str) -> str:
    return f"void f(torch::Tensor x) {{\n{statement}\n}}\n"


def test_elements_of_types_that_pytorch_has_none_of_do_not_link(builder: Builder) -> None:
    """PyTorch declares these for every type, and a library that calls them can't be loaded."""
    statements = (
        "x.data_ptr<long long>(), x.data_ptr<const float>(), x.mutable_data_ptr<const double>();",
        "x.const_data_ptr<unsigned long long>(), x.accessor<char, 1>();",
        "x.packed_accessor32<long double, 1>(), x.item<uint32_t>(), x.item<const int>();",
    )
    attempt = over_light_headers(builder, in_function("\n".join(statements)))
    assert attempt.content is None and not attempt.headers_lacking
    missing = [line.partition("'")[2] for line in attempt.log.splitlines()]
    assert sorted(missing) == [
        "char* at::Tensor::data_ptr<char>() const'",
        "double const* at::Tensor::data_ptr<double const>() const'",
        "float const* at::Tensor::data_ptr<float const>() const'",
        "int const at::Tensor::item<int const>() const'",
        "long double* at::Tensor::data_ptr<long double>() const'",
        "long long* at::Tensor::data_ptr<long long>() const'",
        "unsigned int at::Tensor::item<unsigned int>() const'",
        "unsigned long long* at::Tensor::data_ptr<unsigned long long>() const'",
    ]


REFUSED = (
    "torch::zeros({2}).accessor<float, 1>();",
    "x.contiguous().packed_accessor32<float, 2, torch::RestrictPtrTraits>();",
    "auto type = at::kFloat32;",
    "auto type = c10::kInt64;",
    "at::ScalarType type = x.dtype();",
    'AT_DISPATCH_FLOATING_TYPES(x.dtype(), "f", [&] {});',
    "auto number = torch::Scalar(1).to<long long>();",
    "x.fill_(1ull);",
    "c10::CppTypeToScalarType<long long>::value;",
    'AT_DISPATCH_FLOATING_TYPES(x.type(), "f", [&] {});',
    "auto smaller = x.half();",
    "torch::RestrictPtrTraits<float>::PtrType data;",
)
"""A line each of a compiler's errors."""
ALLOWED = (
    "x.data_ptr<int64_t>(), x.data_ptr<at::Half>(), x.data_ptr<uint32_t>();",
    "x.const_data_ptr<const float>(), x.const_data_ptr<float>(), x.mutable_data_ptr<bool>();",
    "x.accessor<const float, 1>(), x.packed_accessor64<double, 2>(), x.item<uint8_t>();",
    "x.item().to<int64_t>(), x.fill_(1ll), x.fill_(1u);",
    "at::ScalarType type = x.dtype().toScalarType(); type = c10::typeMetaToScalarType(x.dtype());",
    "x.to(x.dtype()), torch::empty({2}, x.dtype()), x.options().dtype(x.dtype());",
    "bool same = x.dtype() == x.scalar_type() && x.dtype() != torch::kInt32;",
    "type = at::kUInt16; type = torch::kFloat32; type = torch::kUInt8;",
    "x.sum(0), x.sum({0, 1}, true), x.mean(at::kFloat), torch::empty_like(x, at::kHalf);",
)


def refused(log: str) -> list[str]:
    """Those of the statements that a compiler told of."""
    lines = {
        int(number) for number in re.findall(r"^main\.cpp:(\d+):\d+: error", log, re.MULTILINE)
    }
    return [each for number, each in enumerate(REFUSED) if number + 2 in lines]


EACH = "\n".join(
    f"void f{number}(torch::Tensor x) {{ {statement} }}" for number, statement in enumerate(REFUSED)
)


def test_what_pytorch_does_not_compile_is_left_to_its_headers(builder: Builder) -> None:
    attempt = over_light_headers(builder, EACH)
    assert refused(attempt.log) == list(REFUSED)
    assert attempt.headers_lacking


@pytest.mark.slow
def test_pytorch_does_not_compile_them_indeed(builder: Builder) -> None:
    attempt = over_light_headers(builder, EACH, light=False)
    assert refused(attempt.log) == list(REFUSED)
    attempt = over_light_headers(builder, in_function("\n".join(ALLOWED)), light=False)
    assert attempt.content is not None, attempt.log


DISPATCH = 'AT_DISPATCH_FLOATING_TYPES(x.type(), "f", [&] { x.data_ptr<scalar_t>(); });'
"""As tutorials and models write it."""
CUDA = f"""
    #include <torch/extension.h>
    void g(torch::Tensor x) {{ {DISPATCH} }}
"""


def test_a_dispatch_over_what_type_gives_fails_without_pytorchs_headers(builder: Builder) -> None:
    if Torch.find().dispatches_types:
        pytest.skip("AT_DISPATCH of this PyTorch takes what type() gives")
    attempt = over_light_headers(builder, in_function(DISPATCH))
    assert "cannot convert 'const at::DeprecatedTypeProperties' to 'c10::ScalarType'" in attempt.log
    assert not attempt.headers_lacking


@pytest.mark.thorough
@needs_nvcc
def test_nvcc_too_has_the_last_word_on_it(builder: Builder) -> None:
    attempt = over_light_headers(builder, "void g(torch::Tensor x);", CUDA)
    assert "no suitable conversion function from" in attempt.log
    assert not attempt.headers_lacking


def test_whether_pytorch_takes_it_is_in_its_headers(tmp_path: Path) -> None:
    header = tmp_path / "include" / "ATen" / "Dispatch.h"
    header.parent.mkdir(parents=True)
    header.write_text("inline at::ScalarType scalar_type(const at::DeprecatedTypeProperties& t);")
    old = Torch(tmp_path, "2.5.0", "-std=c++17")
    assert old.dispatches_types
    header.write_text("#include <torch/headeronly/core/Dispatch.h>")
    assert not old.dispatches_types


def test_what_pytorch_compiles_is_built(builder: Builder) -> None:
    attempt = over_light_headers(builder, in_function("\n".join(ALLOWED)))
    assert attempt.content is not None, attempt.log


def test_a_function_of_pytorchs_that_a_candidate_declares_itself_is_left_to_its_headers(
    builder: Builder,
) -> None:
    body = """
        namespace at::native { Tensor relu(const Tensor& x); }
        torch::Tensor f(torch::Tensor x) { return at::native::relu(x); }
    """
    attempt = over_light_headers(builder, body)
    assert attempt.content is None and attempt.headers_lacking
    assert "undefined reference to 'at::native::relu(at::Tensor const&)'" in attempt.log
    hidden = 'namespace c10 { __attribute__((visibility("hidden"))) int some(); }'
    attempt = over_light_headers(builder, f"{hidden}\nint f() {{ return c10::some(); }}")
    assert attempt.content is None and attempt.headers_lacking
    own = "at::Tensor g(at::Tensor x); at::Tensor f(at::Tensor x) { return g(x); }"
    attempt = over_light_headers(builder, own)
    assert attempt.content is None and not attempt.headers_lacking


@pytest.mark.thorough
@needs_nvcc
def test_a_name_of_std_that_nvcc_misses_is_left_to_pytorchs_headers(builder: Builder) -> None:
    cuda = "using namespace std;\nmap<int, int> known;"
    attempt = over_light_headers(builder, "torch::Tensor f(torch::Tensor x);", cuda)
    assert attempt.content is None and attempt.headers_lacking, attempt.log


@pytest.mark.thorough
@needs_nvcc
def test_headers_of_cuda_have_what_pytorchs_of_that_name_have(builder: Builder) -> None:
    includes = """
#include <torch/types.h>
#include <c10/cuda/CUDAGuard.h>
#include <ATen/cuda/detail/KernelUtils.h>
"""
    body = f"""{includes}
__global__ void k(float* x, int n) {{ CUDA_KERNEL_LOOP(i, n) x[i] = 1; }}
__global__ void a(float* x, int n) {{ CUDA_KERNEL_ASSERT(n > 0); x[threadIdx.x] = 1; }}
void f(torch::Tensor x) {{
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const int n = x.numel();
  k<<<at::cuda::detail::GET_BLOCKS(n), 256, 0, stream>>>(x.data_ptr<float>(), n);
  a<<<1, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}}
"""
    attempt = over_light_headers(builder, "void f(torch::Tensor x);", body)
    assert attempt.content is not None, attempt.log
    # What one of them lacks, another has.
    context = "#include <ATen/cuda/CUDAContext.h>\n"
    for text in (
        f"{includes}void f() {{ at::cuda::getCurrentDeviceProperties(); }}",
        f"{context}void f() {{ c10::cuda::CUDAGuard guard(0); }}",
    ):
        attempt = over_light_headers(builder, "", text)
        assert attempt.content is None and attempt.headers_lacking, attempt.log
