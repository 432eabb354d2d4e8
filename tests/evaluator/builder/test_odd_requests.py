"""Requests that no `load` of PyTorch's would make: each is the candidate's failure, not ours."""

from __future__ import annotations

import ctypes
import time

import pytest
import torch  # noqa: F401 (its libraries)

from evaluator.builder.builder import Builder
from evaluator.builder.sources import Source, Sources
from evaluator.ipc.build_request import BuildRequest

SHOWN = 'extern "C" int '
FILE = ("x.cpp", f"{SHOWN} answer() {{ return 42; }}")


@pytest.mark.parametrize(
    "name", ["unit0.o/x.h", "runtime-binding.cpp.o/x.h", "library.so/x.h", "stubs.h/x.h"]
)
def test_names_of_the_linkers_files_are_free(builder, name):
    outcome = builder.build(BuildRequest("odd", files=(FILE,), included=((name, "//\n"),)))
    assert outcome.ok, outcome.log


@pytest.mark.parametrize("name", ["x.cpp.o/x.h", "x.cpp.d/x.h"])
def test_a_folder_in_the_place_of_what_the_compiler_writes_is_the_candidates_error(builder, name):
    outcome = builder.build(BuildRequest("odd", files=(FILE,), included=((name, "//\n"),)))
    assert not outcome.ok and "x.cpp." in outcome.log


@pytest.mark.parametrize(
    "request_changes",
    [
        {"cflags": ("-DX=" + "A" * 2**18,)},
        {"include_folders": tuple("/".join(["d" * 199] * 8) + f"/{i}" for i in range(99))},
    ],
)
def test_a_command_that_no_system_takes_is_the_candidates_error(builder, request_changes):
    outcome = builder.build(BuildRequest("odd", files=(FILE,), **request_changes))
    assert not outcome.ok and "too long" in outcome.log


def test_an_object_is_of_the_source_that_it_includes_too(builder):
    main = '#include "part.cpp"\n' + SHOWN + "answer() { return part(); }"
    made = []
    for number in (1, 2):
        part = f"static inline int part() {{ return {number}; }}\n"
        request = BuildRequest("odd", files=(("main.cpp", main), ("part.cpp", part)))
        outcome = builder.build(request)
        assert outcome.ok, outcome.log
        made.append(ctypes.CDLL(outcome.library).answer())
    assert made == [1, 2]


def test_a_source_that_another_does_not_name_is_out_of_its_reach(builder):
    main = (
        "#define TEXT(x) #x\n#define QUOTED(x) TEXT(x)\n#define JOINED(a, b) a##b\n"
        '#if __has_include(QUOTED(JOINED(par, t).cpp))\n#error "seen"\n#endif\n' + FILE[1]
    )
    outcome = builder.build(BuildRequest("odd", files=(("main.cpp", main), ("part.cpp", "//\n"))))
    assert outcome.ok, outcome.log


def test_sources_are_compiled_with_the_others_where_one_is_named():
    units = tuple(
        Source(name, text, device=False)
        for name, text in (
            ("deep/first.cpp", '#include "second.cpp"'),
            ("deep/second.cpp", '#include "../third.cpp"'),
            ("third.cpp", "// first_cpp, first.cppm, third.cpp"),
        )
    )

    def seen(header: str) -> list[set[str]]:
        sources = Sources(units, (("kernels.h", header),), ())
        return [{name for name, _ in sources.seen_by(each).others} for each in units]

    others = [{"kernels.h"} | {unit.name for unit in units if unit is not each} for each in units]
    assert seen("") == [others[0], others[1], {"kernels.h"}]
    assert seen('#include "second.cpp"') == others


def test_many_sources_may_not_take_many_times_as_long(cache):
    units = tuple((f"u{number}.cpp", f"int f{number};") for number in range(99))
    builder = Builder(cache, jobs=1)
    builder.warm_up()
    begin = time.monotonic()
    outcome = builder.build(BuildRequest("odd", files=units), timeout_s=0.5)
    assert outcome.timed_out and not outcome.ok
    assert time.monotonic() - begin < 20
