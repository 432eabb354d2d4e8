import time
from pathlib import Path

import pytest

from evaluator.builder.diagnosis import (
    MAX_LOG_BYTES,
    is_pytorchs,
    linker_names,
    needs_full_headers,
    readable,
)
from evaluator.builder.flags import RefusedFlagError, device_flags


@pytest.mark.parametrize(
    "log",
    [
        "main.cpp:3:5: error: 'class at::refinery_::Tensor' has no member named 'lgamma'\n",
        "main.cpp:3:5: error: 'lgamma' is not a member of 'torch'\n",
        "main.cpp:2:10: fatal error: ATen/native/cuda/Loops.cuh: No such file or directory\n",
        "/c/headers-1/refinery/binding.h:53:3: error: static assertion failed\n",
        "main.cpp:3:5: error: 'AT_DISPATCH_V2' was not declared in this scope\n",
        "main.cpp:3:5: error: 'deque' is not a member of 'std'\n",
        "main.cpp:3:5: error: 'std::chrono' has not been declared\n",
        "main.cpp:3:5: error: 'map' was not declared in this scope\n"
        "main.cpp:2:1: note: 'std::map' is defined in header '<map>'; did you forget to\n",
        "main.cpp:3:14: error: expected constructor before '(' token\n"
        "    3 | TORCH_LIBRARY(x, m) {\n",
        'cuda.cu(9): error: namespace "torch::" has no member "lgamma"\n',
        'cuda.cu(9): error: class "at::Tensor" has no member "lgamma"\n',
        'cuda.cu(9): error: identifier "i" is undefined\n    CUDA_KERNEL_LOOP(i, n) {\n',
        "main.cpp:3:5: error: no matching function for call to 'tensor(std::vector<float>&)'\n"
        "    3 | auto x = torch::tensor(v);\n"
        "/c/headers-1/refinery/tensor.h:88:8: note: candidate: 'template<class T> at::Tensor'\n",
        "/x/torch/include/ATen/ops/add.h(3): error: identifier is undefined\n",
    ],
)
def test_errors_that_name_our_headers_ask_for_the_full_ones(log):
    assert needs_full_headers("In file included from main.cpp:1:\n" + log)


@pytest.mark.parametrize(
    "log",
    [
        "main.cpp:3:5: error: expected ';' before 'return'\n    3 |   TORCH_CHECK(x)\n",
        "main.cpp:3:5: error: 'foo' was not declared in this scope\n",
        "main.cpp:3:1: error: expected primary-expression before 'static'\n"
        "    3 | PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n",
        'cuda.cu(9): error: identifier "blockIdy" is undefined\n',
        'cuda.cu(7): error: expected a ";"\n',
        "main.cpp:3:5: error: no matching function for call to 'scale(int)'\n"
        "main.cpp:2:5: note: candidate: 'void scale(float*)'\n"
        "main.cpp:4:5: error: call of overloaded 'max(int)'\n"
        "/c/headers-1/refinery/tensor.h:88:8: note: candidate: 'template<class T> at::Tensor'\n",
        "main.cpp:3:5: error: 'y' was not declared in this scope\n"
        "main.cpp:4:5: error: 'lgamma' is not a member of 'torch'\n",
        "",
    ],
)
def test_the_candidates_own_errors_stand(log):
    assert not needs_full_headers(log)


def _unbound(name: str, suggested: str) -> str:
    return (
        f"main.cpp:4:46: error: '{name}' was not declared in this scope; did you mean "
        f"'{suggested}{name}'?\n"
        f'    4 | m.def("{name}", torch::wrap_pybind_function({name}), "{name}");\n'
        f"      |                                              ^~~~~~~\n"
        f"/c/headers-1/refinery/tensor.h:15:15: note: '{suggested}{name}' declared here\n"
    )


def _bound(before: str, name: str) -> str:
    binding = f'm.def("{name}", torch::wrap_pybind_function({name}), "{name}");'
    return f"#include <torch/extension.h>\n{before}\nPYBIND11_MODULE(x, m) {{\n{binding}\n}}"


@pytest.mark.parametrize(
    ("name", "suggested"), [("forward", "std::"), ("cumsum", "at::refinery_::")]
)
def test_a_function_that_is_listed_and_never_declared_is_in_no_header(name, suggested):
    log = _unbound(name, suggested)
    assert not needs_full_headers(log, _bound("", name))
    assert not needs_full_headers(log, _bound(f"at::Tensor {name}_cuda(at::Tensor x);", name))


@pytest.mark.parametrize(
    "before",
    [
        "using namespace torch;",
        "using namespace std;",
        "#if TORCH_VERSION_MAJOR >= 2\nat::Tensor forward(at::Tensor x);\n#endif",
    ],
)
def test_a_function_that_a_header_may_declare_is_looked_for_in_pytorchs(before):
    assert needs_full_headers(_unbound("forward", "std::"), _bound(before, "forward"))


_NVCC_OF_STD = (
    'cuda.cu(9): error: identifier "map" is undefined\n  map<int, int> known;\n  ^\n',
    "cuda.cu(9): error: deque is not a template\n  deque<int> known;\n  ^\n",
    'cuda.cu(4): error: name followed by "::" must be a class or namespace name\n'
    "  void f() { auto t = chrono::steady_clock::now(); }\n"
    "                      ^\n",
)


@pytest.mark.parametrize("log", _NVCC_OF_STD)
def test_what_nvcc_misses_of_std_may_be_what_pytorch_brings_along(log):
    assert needs_full_headers(log, "#include <vector>\nusing namespace  std;\n")
    assert not needs_full_headers(log, "using std::vector;\n")


def test_what_nvcc_misses_of_nobodys_stands_though_std_is_used():
    source = "using namespace std;\n"
    for name in ("scale", "known"):
        assert not needs_full_headers(
            f'cuda.cu(9): error: identifier "{name}" is undefined\n', source
        )
    assert not needs_full_headers(_NVCC_OF_STD[2].replace("chrono", "myname"), source)
    assert not needs_full_headers(_NVCC_OF_STD[2].partition("\n")[0] + "\n", source)


@pytest.mark.parametrize(
    ("symbol", "pytorchs"),
    [
        ("at::native::scale(at::refinery_::Tensor const&)", True),
        ("at::refinery_::Tensor at::native::scale<float>(at::refinery_::Tensor const&)", True),
        ("vtable for c10::Event", True),
        ("long* torch::jit::counts<std::vector<int> >()", True),
        ("at::refinery_::Tensor::data_ptr<long long>() const", False),
        ("long long* at::refinery_::Tensor::data_ptr<long long>() const", False),
        ("scale(at::refinery_::Tensor const&)", False),
        ("at::refinery_::Tensor mine::scale<at::refinery_::Tensor>(int)", False),
        ("(anonymous namespace)::scale()", False),
        ("", False),
    ],
)
def test_a_missing_symbol_is_pytorchs_or_the_candidates(symbol, pytorchs):
    assert is_pytorchs(symbol) is pytorchs


def test_the_symbols_that_a_linker_misses_are_read():
    said = (
        "/usr/bin/ld: unit0.o: in function `f(at::Tensor)':\n"
        "main.cpp:(.text+0x5): undefined reference to `at::native::scale(int)'\n"
        "/usr/bin/ld: unit0.o: hidden symbol `c10::tell()' isn't defined\n"
        "/usr/bin/ld: unit1.o: multiple definition of `f(int)'; unit0.o: first defined here\n"
    )
    assert linker_names(said) == ["at::native::scale(int)", "c10::tell()", "f(int)"]


def test_the_log_has_no_paths_or_names_of_ours_and_a_limit():
    log = readable("/w/1/main.cpp:1: at::refinery_::Tensor /h/torch/x.h", Path("/w/1"), Path("/h"))
    assert log == "main.cpp:1: at::Tensor torch/x.h"
    assert len(readable("é" * MAX_LOG_BYTES, Path("/w")).encode()) < MAX_LOG_BYTES + 100


def test_headers_are_named_without_detours():
    gcc = (
        "In file included from /usr/lib/gcc/x/12/../../../../include/c++/12/vector:66,\n"
        "                 from /cuda/bin/../targets/x/include/cub/a.cuh:3,\n"
        "                 from main.cpp:1:\n"
        '    1 | #include "/a/b/../c.h"\n'
    )
    assert readable(gcc, Path("/w")) == (
        "In file included from /usr/include/c++/12/vector:66,\n"
        "                 from /cuda/targets/x/include/cub/a.cuh:3,\n"
        "                 from main.cpp:1:\n"
        '    1 | #include "/a/b/../c.h"\n'
    )
    nvcc = "/cuda/bin/../include/cub/b.cuh(60): error: no\n    /* /a/../b */\n"
    assert (
        readable(nvcc, Path("/w")) == "/cuda/include/cub/b.cuh(60): error: no\n    /* /a/../b */\n"
    )


def test_a_name_that_a_candidate_made_up_is_read_once():
    """`#line` names any file: one pass over it for each of its folders would take minutes."""
    log = readable("/" + "a/../" * 100_000 + "b.h(1): error: no\n" + "/a" * 100_000, Path("/w"))
    assert log.startswith("/b.h(1): error: no\n/a/a")


def test_no_output_takes_long_to_read():
    many = 50_000
    begin = time.monotonic()
    assert not is_pytorchs("f" + "<" * many + ">" * many)
    for quoted in ("/refinery/" * many + "x:1:1: note: hm", "a" * many):
        assert not needs_full_headers(f"main.cpp:3:5: error: hm\n{quoted}\n")
    with pytest.raises(RefusedFlagError):
        device_flags(("-Xptxas=suppress-" + "a" * many + "!",))
    assert time.monotonic() - begin < 2.0


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("x.cpp:2:24: error: 'indexing' is not a namespace-name\n", ""),
        ("x.cu(2): error: name must be a namespace name\n", ""),
        ("x.cpp:4:7: error: 'nn' has not been declared\n", "using namespace torch;"),
        ("x.cpp:4:7: error: 'Foo' was not declared in this scope\n", "using namespace at ;"),
        ("x.cpp:4:7: error: 'topk' was not declared in this scope\n    4 | topk (x, 3);\n", ""),
        ('x.cu(4): error: identifier "topk" is undefined\n  auto a = topk(x, 3);\n', ""),
        (
            "x.cpp:4:7: error: expected primary-expression before '<<' token\n"
            '    4 | TORCH_CHECK_GE(a, 1) << "few";\n',
            "",
        ),
    ],
)
def test_a_bare_name_may_be_pytorchs(log, source, tmp_path):
    (tmp_path / "topk.h").touch()
    assert needs_full_headers(log, source, tmp_path)


@pytest.mark.parametrize(
    ("name", "line"), [("topq", "topq(x, 3);"), ("topk", "n = topk;"), ("topk", "n = topk3(topk);")]
)
def test_a_bare_name_that_nobody_has_is_the_candidates_own(name, line, tmp_path):
    (tmp_path / "topk.h").touch()
    log = f"x.cpp:4:7: error: '{name}' was not declared in this scope\n    4 | {line}\n"
    assert not needs_full_headers(log, "using namespace torchlike;", tmp_path)
