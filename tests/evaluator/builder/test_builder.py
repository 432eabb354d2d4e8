from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.builder import headers
from evaluator.builder.builder import Builder
from evaluator.builder.sources import arrange
from evaluator.builder.toolchain import Toolchain
from evaluator.builder.workshop import Flags, Workshop
from evaluator.errors import BuilderError
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.walls.environment import python_path
from tests.evaluator.builder.cuda_candidates import CUDA
from tests.evaluator.processes import command_line, descendants_once, still_running
from tests.nvcc import needs_nvcc

CUBLAS = Path("/usr/local/cuda/include/cublas_v2.h").exists()

# Without the implicit headers a build takes a moment: for tests that are about something else.
SHOWN = 'extern "C" int '
BARE = BuildRequest("bare", (f"{SHOWN} answer() {{ return 42; }}",), implicit_headers=False)
FILE = (("a.cpp", "int x;"),)


def source(body: str, **changes) -> BuildRequest:
    return replace(
        BuildRequest("candidate", (body,), functions=(("f", "f"),)),
        **changes,
    )


def exported(library: str) -> str:
    return subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout


def test_a_library_is_built_cached_and_read_only(builder):
    first, second = builder.build(BARE), builder.build(BARE)
    assert first.ok and first.headers == "light" and not first.cached and first.log == ""
    assert second.ok and second.cached and second.library == first.library
    assert "answer" in exported(first.library)
    assert Path(first.library).stat().st_mode & 0o222 == 0
    assert Path(first.library).name == "bare.so"


@pytest.mark.parametrize("light", [True, False])
def test_symbols_are_as_visible_as_pytorchs_own_build_leaves_them(builder, tmp_path, light):
    text = (
        f"{SHOWN} one() {{ return 1; }} int table[4]; namespace n {{ int two() {{ return 2; }} }}\n"
        'extern "C" { static int three() { return 3; } int (*user)() = three; }\n'
        'extern "C" __attribute__((visibility("hidden"))) int four() { return 4; }\n'
    )
    sources = arrange(BuildRequest("visible", (text,), implicit_headers=False))
    workshop = builder._workshop(with_cuda=False)
    attempt = workshop.attempt("visible", sources, Flags((), (), ()), light=light, timeout_s=120)
    assert attempt.content is not None, attempt.log
    library = tmp_path / "visible.so"
    library.write_bytes(attempt.content)
    names = {line.split()[-1] for line in exported(str(library)).splitlines()}
    assert {"one", "table", "_ZN1n3twoEv", "user"} <= names
    assert not {"three", "four"} & names


def test_a_light_library_needs_pytorchs_by_name(builder, cache):
    outcome = builder.build(BARE)
    listed = subprocess.run(["readelf", "-d", outcome.library], capture_output=True, text=True)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", listed.stdout))
    assert needed >= {"libc10.so", "libtorch_cpu.so", "libtorch.so", "libtorch_python.so"}
    sizes = [path.stat().st_size for path in (cache / "objects").glob("*/libtorch_cpu.so")]
    # Objects are kept between runs of the tests, those of an earlier version too.
    assert sizes and max(sizes) < 2**16, "the real one takes long"


def test_what_is_in_the_cache_needs_no_walls(builder, cache):
    assert builder.build(BARE).ok
    other = Builder(cache)
    assert other.build(BARE).cached
    assert not other._workshop(with_cuda=False).enclosure.tried
    assert "compiler: clean environment" in other.isolation
    assert other._workshop(with_cuda=False).enclosure.tried


def test_no_flag_passes_for_two(builder):
    """Else one candidate's object would be taken for another's, whose flags read alike."""
    text = (
        f"#ifdef TWO\n{SHOWN} both() {{ return 2; }}\n#else\n{SHOWN} one() {{ return 1; }}\n#endif"
    )
    asked = BuildRequest("flags", (text,), implicit_headers=False)
    for flags, name in ((("-DONE=1\x01-DTWO=1",), "one"), (("-DONE=1", "-DTWO=1"), "both")):
        built = builder.build(replace(asked, cflags=flags))
        assert built.ok and f" T {name}\n" in exported(built.library)


def test_a_syntax_error_reads_as_the_compiler_said_it(builder):
    broken = source("torch::Tensor f(torch::Tensor x) {\n  int n = 3\n  return x;\n}")
    outcome = builder.build(broken)
    assert not outcome.ok and outcome.headers == "light" and outcome.library == ""
    assert "main.cpp:4:3: error: expected ',' or ';' before 'return'" in outcome.log
    assert "refinery_::" not in outcome.log and "/work-" not in outcome.log
    again = builder.build(broken)
    assert again.cached and again.log == outcome.log


def test_a_function_that_nobody_wrote(builder):
    declared = builder.build(source("torch::Tensor f(torch::Tensor x);"))
    assert not declared.ok
    assert declared.log == "error: undefined reference to 'f(at::Tensor)'\n"
    unknown = builder.build(source("int g() { return 1; }"))
    assert not unknown.ok and "'f' was not declared in this scope" in unknown.log
    listed = replace(source("int g() { return 1; }"), functions=(("cumsum", ""), ("g", "")))
    outcome = builder.build(listed)
    assert not outcome.ok and "'cumsum' was not declared in this scope" in outcome.log
    assert outcome.headers == "light", "PyTorch's headers declare at::cumsum, and refuse the same"


def test_refused_flags_are_named_and_nothing_is_compiled(builder):
    for changes in (
        {"cflags": ("-O2", "-fplugin=evil.so")},
        {"cuda_cflags": ("-optf=evil.so",)},
        {"ldflags": ("-Wl,-rpath,evil.so",)},
        {"cflags": ("-I/usr/include/\0evil.so",)},
        {"cuda_cflags": ("-I/usr/include/\0evil.so",)},
        {"ldflags": ("-L/usr/lib/\0evil.so",)},
    ):
        outcome = builder.build(replace(BARE, **changes))
        assert not outcome.ok and outcome.headers == "none"
        assert "evil.so" in outcome.log and "not allowed" in outcome.log


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, "not an identifier") for name in ("", "a-b", "1a", "a;b", "../x", "a\n")),
        ("x" * 260, "longer than 200"),
    ],
)
def test_a_name_that_is_no_identifier_is_refused(builder, name, said):
    outcome = builder.build(replace(BARE, name=name))
    assert not outcome.ok and said in outcome.log


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        *(
            (BuildRequest("candidate", files=((name, "int x;"),)), "not allowed")
            for name in (
                *("", "x.h", "x", "-x.cpp", "x.cuh", "../x.cpp", "/etc/x.cpp", "a/../../x.cpp"),
                *("tmp/x.cpp", "x" * 300 + ".cpp"),
            )
        ),
        (replace(BARE, included=(("../x.h", ""),)), "not allowed"),
        (replace(BARE, include_folders=("..",)), "not allowed"),
        (
            BuildRequest("candidate", files=FILE, included=(("a.cpp/b/c.h", ""),)),
            "a.cpp is the name of a file and of a folder",
        ),
        # PyTorch would compile both to one object.
        (
            BuildRequest("candidate", files=(*FILE, ("b/a.cc", "int y;"))),
            "multiple rules generate a.o",
        ),
        (replace(BARE, included=(("main.cpp", ""),)), "two files have the same name"),
    ],
)
def test_files_that_no_build_has_are_refused(builder, request_, said):
    outcome = builder.build(request_)
    assert not outcome.ok and said in outcome.log


def test_files_of_a_load_are_compiled_with_their_own_headers(builder):
    files = (
        ("src/one.cpp", f'#include "../sub/two.h"\n{SHOWN} one() {{ return two() + 1; }}'),
        ("two.cc", '#include <two.h>\n#include "src/part.cpp"\nint two() { return part(); }'),
    )
    included = (("sub/two.h", "int two();"), ("src/part.cpp", "int part() { return 2; }"))
    request = BuildRequest("several", files=files, included=included, include_folders=("sub",))
    outcome = builder.build(request)
    assert outcome.ok, outcome.log
    assert "one" in exported(outcome.library)


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_file_of_ours_never_reaches_the_log(cache, tmp_path, namespaces, monkeypatch):
    builder = Builder(cache)
    walled = "compiler: own file system" in builder.isolation
    if not namespaces:
        enclosure = builder._workshop(with_cuda=False).enclosure
        monkeypatch.setattr(enclosure, "_namespaces", False)
    secret = tmp_path / "token"
    secret.write_text("sk-live-0123456789 not C++\n")

    def built(body: str) -> BuildOutcome:
        # The two cases must not answer for each other from the cache.
        outcome = builder.build(
            BuildRequest("leak", (f"{body} // {namespaces}\n",), implicit_headers=False)
        )
        assert "sk-live" not in outcome.log
        return outcome

    included = built(f'#include "{secret}"')
    assert not included.ok
    if not walled:
        assert "include_not_allowed" in included.log
        return
    assert ("No such file" if namespaces else "Permission denied") in included.log
    # The assembler finds nothing either.
    assembled = built(f'__asm__(".incbin \\"{secret}\\"");')
    assert not assembled.ok and "file not found" in assembled.log
    # Whether a file is there is all that Landlock does not hide.
    assert built(f'#if __has_include("{secret}")\n#error seen\n#endif').ok or not namespaces


def test_the_same_request_at_once_is_built_once(builder):
    request = replace(BARE, cflags=("-DCONCURRENT",))
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: builder.build(request), range(8)))
    assert all(outcome.ok for outcome in outcomes)
    assert len({outcome.library for outcome in outcomes}) == 1
    assert sum(not outcome.cached for outcome in outcomes) == 1


def test_what_stands_behind_the_light_headers_is_made_by_one_builder(tmp_path, monkeypatch):
    made = []

    def compiled(workshop: Workshop, name: str, folder: Path) -> str:
        made.append(name)
        time.sleep(0.1)
        (folder / f"{name}.o").touch()
        return ""

    monkeypatch.setattr(Workshop, "_runtime_object", compiled)
    builders = [Builder(tmp_path / "cache") for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(Builder.warm_up, builders))
    assert sorted(made) == sorted(headers.RUNTIME)


def test_a_compiler_that_runs_for_ever_is_killed_and_not_remembered(builder):
    slow = """
    template <int N> constexpr unsigned long spin() {
      unsigned long sum = N;
      for (int i = 0; i < 2500; i++) for (int j = 0; j < 2500; j++) sum += i ^ j;
      return sum;
    }
    template <int... N> struct All { static constexpr unsigned long v = (spin<N>() + ...); };
    unsigned long x = All<1, 2, 3, 4, 5, 6, 7, 8, 9>::v;
    """
    request = BuildRequest("slow", (slow,), cflags=("-DSLOW_ONE",), implicit_headers=False)
    start = time.monotonic()
    outcome = builder.build(request, timeout_s=0.5)
    assert not outcome.ok and "compile timed out after 0.5 s" in outcome.log
    assert time.monotonic() - start < 60
    assert not slow_ones()
    assert not builder.build(request, timeout_s=0.5).cached


def slow_ones() -> list[str]:
    lines = (command_line(int(process.name)) for process in Path("/proc").glob("[0-9]*"))
    return [line for line in lines if "cc1plus" in line and "-DSLOW_ONE" in line]


COMPILES = """
import sys
from pathlib import Path
from evaluator.builder.builder import Builder
from evaluator.builder.work_folder import work_folder

builder = Builder(Path(sys.argv[1]))
workshop = builder._workshop(with_cuda=False)
workshop.enclosure.prepare()
with work_folder(workshop.folder) as folder:
    workshop.run(["sleep", "300"], folder, 300.0)
"""


def test_a_compiler_ends_with_its_builder(tmp_path):
    """Which is killed, and says nothing to anybody."""
    command = [sys.executable, "-c", COMPILES, str(tmp_path)]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": python_path()}) as dies:
        below = descendants_once("sleep 300", dies.pid)
        dies.kill()
    assert not still_running(below)


def test_a_missing_compiler_is_told_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuilderError, match=r"install g\+\+"):
        Builder(tmp_path / "cache").build(BARE)


def test_cuda_without_a_gpu_is_told_with_the_remedy(tmp_path):
    with pytest.raises(BuilderError, match="no GPU here"):
        Builder(tmp_path / "cache").build(CUDA["dispatch_half"])


def test_a_cache_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuilderError, match="cannot be made"):
        Builder(tmp_path / "file" / "cache")


def test_dependencies_are_read_as_compilers_write_them(tmp_path):
    tools = Toolchain.find(None, with_cuda=False)
    ours = tmp_path / "it's $mine #1"
    ours.mkdir()
    (ours / "a.h").touch()
    (ours / "away.h").symlink_to("/etc/passwd")
    (ours / "folder").symlink_to("/etc")
    (tmp_path / "b.h").touch()

    def refused(*names: str) -> str | None:
        (tmp_path / "main.cpp").write_text(
            "".join(f'#include "{name}"\n' for name in names) + "int main;\n"
        )
        command = [*tools.host_command("x", "main.cpp", (), None), "-E"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tools.forbidden_include((tmp_path / "main.cpp.d").read_text(), (ours,))

    assert refused(f"{ours}/a.h") is None
    assert refused(f"{ours}/a.h", f"{ours}/away.h") == f"{ours}/away.h"
    assert refused(f"{ours}/folder/passwd") == f"{ours}/folder/passwd"
    assert refused(f"{ours}/../b.h", f"{ours}/a.h") == f"{ours}/../b.h"


QUICK = ("streams_and_guards", "dispatch_half", "binding_in_cpp")


@pytest.mark.thorough
@needs_nvcc
@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in CUDA],
)
def test_cuda_candidates_take_the_light_path(builder, name):
    if "cublas" in name and not CUBLAS:
        pytest.skip("cuBLAS's headers are not installed")
    outcome = builder.build(CUDA[name])
    assert outcome.ok, outcome.log
    assert outcome.headers == "light"


@needs_nvcc
def test_a_mistake_in_a_kernel_reads_as_nvcc_said_it(builder):
    broken = BuildRequest(
        "broken",
        ("torch::Tensor f(torch::Tensor x);",),
        ("__global__ void k(float* x) { x[threadIdx.x] = scale; }",),
        functions=(("f", "f"),),
        with_cuda=True,
    )
    outcome = builder.build(broken)
    assert not outcome.ok and outcome.headers == "light"
    assert 'cuda.cu(4): error: identifier "scale" is undefined' in outcome.log


@pytest.mark.slow
def test_what_the_light_headers_lack_is_built_with_the_full_ones(builder):
    body = "torch::Tensor f(torch::Tensor x) { return torch::lgamma(x); }"
    outcome = builder.build(source(body), timeout_s=600)
    assert outcome.ok, outcome.log
    assert outcome.headers == "full"


@pytest.mark.slow
def test_an_error_over_the_full_headers_is_what_is_told(builder):
    body = "torch::Tensor f(torch::Tensor x) { return x.no_such_method(); }"
    outcome = builder.build(source(body), timeout_s=600)
    assert not outcome.ok and outcome.headers == "full"
    assert "has no member named 'no_such_method'" in outcome.log
