from __future__ import annotations

import pytest

from evaluator.deep_audit.address_report import memory_finding, undefined_findings

OVERFLOW = """\
=================================================================
==18185==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x7feb0800 at pc 0x7febc7
READ of size 4 at 0x7feb0800 thread T0
    #0 kernel<float>(float const*, long) /cache/builds/work-7midyri5/main.cpp:31
    #1 scale(at::refinery_::Tensor) /cache/builds/work-7midyri5/main.cpp:17
    #2 refinery::dispatch(_object*, long) <null>
    #3 cfunction_vectorcall Objects/methodobject.c:443

0x7feb0800 is located 0 bytes to the right of 524288-byte region [0x7feb000,0x7feb0800)
allocated by thread T0 here:
    #0 __interceptor_posix_memalign ../../src/libsanitizer/asan/asan_malloc_linux.cpp:145
    #1 helper() /cache/builds/work-7midyri5/main.cpp:5

SUMMARY: AddressSanitizer: heap-buffer-overflow /cache/builds/work-7midyri5/main.cpp:31 in kernel
Shadow bytes around the buggy address:
  0x0ffdfbe554b0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
==18185==ABORTING
"""
CRASH = """\
==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000400 (pc 0x7f bp 0x7 sp 0x7 T0)
==7==The signal is caused by a WRITE memory access.
    #0 {frame}
"""


def test_kind_place_words_and_frames_of_the_first_stack() -> None:
    finding = memory_finding("printed before\n" + OVERFLOW)
    assert finding is not None and finding.refuses
    assert (finding.kind, finding.file, finding.line) == ("heap-buffer-overflow", "main.cpp", 31)
    assert finding.text == (
        "READ of size 4, 0 bytes after 524288-byte region, allocated at main.cpp:5"
    )
    assert finding.frames == ("kernel<float> main.cpp:31", "scale main.cpp:17")
    assert "0x" not in str(finding)


def test_a_report_whose_beginning_is_lost() -> None:
    finding = memory_finding(OVERFLOW[OVERFLOW.index("allocated by") :])
    assert finding is not None and finding.refuses
    assert (finding.kind, finding.place) == ("heap-buffer-overflow", "main.cpp:31")
    assert finding.frames == ("kernel main.cpp:31",)


def test_a_crash_refuses_only_within_the_candidates_sources() -> None:
    own = memory_finding(CRASH.format(frame="scale(float*) /c/work-x/main.cpp:9"))
    assert own is not None and own.refuses and own.kind == "SEGV"
    foreign = memory_finding(CRASH.format(frame="at::add(at::Tensor) <null>"))
    assert foreign is not None and not foreign.refuses


@pytest.mark.parametrize(
    ("words", "kind", "refuses"),
    [
        ("attempting double-free on 0x602 in thread T0:", "double-free", True),
        ("attempting free on address which was not malloc()-ed: 0x7", "bad-free", True),
        ("heap-use-after-free on address 0x6 at pc 0x5", "heap-use-after-free", True),
        # The sanitizer itself takes memory and stack.
        ("stack-overflow on address 0x7 (pc 0x6)", "stack-overflow", False),
        ("out of memory: allocator is trying to allocate 0x4 bytes", "out", False),
        ("allocation-size-too-big: requested 0x10", "allocation-size-too-big:", False),
    ],
)
def test_other_errors(words: str, kind: str, refuses: bool) -> None:
    finding = memory_finding(f"==1==ERROR: AddressSanitizer: {words}\n")
    assert finding is not None
    assert (finding.kind, finding.refuses) == (kind, refuses)


def test_nothing_is_found_in_ordinary_output() -> None:
    text = "compiling\nAddressSanitizer is a tool\nwarning: main.cpp:3: something\n"
    assert memory_finding(text) is None
    assert undefined_findings(text) == ()


def test_undefined_behaviour_once_a_place_and_without_headers() -> None:
    shift = "main.cpp:10:19: runtime error: shift exponent 37 is too large for 32-bit type 'int'"
    load = "main.cpp:17:9: runtime error: load of address 0x7ffe148a95d0 with insufficient space"
    index = "main.cpp:20:1: runtime error: index 256 out of bounds for type 'float [4]'"
    header = "/usr/include/c++/12/vector:9:1: runtime error: reference binding to null pointer"
    found = undefined_findings("\n".join([shift, load, shift, header, index]))
    assert [finding.line for finding in found] == [10, 17, 20]
    assert [finding.refuses for finding in found] == [False, False, True]
    assert found[1].text == "load of address ... with insufficient space"
