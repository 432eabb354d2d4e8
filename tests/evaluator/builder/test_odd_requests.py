"""Requests that no `load` of PyTorch's would make: each is the candidate's failure, not ours."""

from __future__ import annotations

import ctypes
import time

import pytest
import torch  # noqa: F401 (its libraries)

from evaluator.builder.builder import Builder
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


def test_many_sources_may_not_take_many_times_as_long(cache):
    units = tuple((f"u{number}.cpp", f"int f{number};") for number in range(99))
    builder = Builder(cache, jobs=1)
    builder.warm_up()
    begin = time.monotonic()
    outcome = builder.build(BuildRequest("odd", files=units), timeout_s=0.5)
    assert outcome.timed_out and not outcome.ok
    assert time.monotonic() - begin < 20
