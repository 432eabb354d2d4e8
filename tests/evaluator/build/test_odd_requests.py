"""Requests that no `load` of PyTorch's would make: each is the candidate's failure, not ours."""

from __future__ import annotations

import pytest

from evaluator.build_request import BuildRequest

SHOWN = 'extern "C" __attribute__((visibility("default"))) int '
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
    "flags",
    [
        {"cflags": ("-I/usr/include/\0",)},
        {"cuda_cflags": ("-I/usr/include/\0",)},
        {"ldflags": ("-L/usr/lib/\0",)},
    ],
)
def test_a_flag_with_a_null_is_refused(builder, flags):
    outcome = builder.build(BuildRequest("odd", files=(FILE,), **flags))
    assert not outcome.ok and "is not allowed" in outcome.log


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
