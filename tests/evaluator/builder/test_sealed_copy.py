"""A sealed copy reads like its file, runs like it, and can't be changed by anybody."""

from __future__ import annotations

import mmap
import os

import pytest

from evaluator.builder.handover import sealed_copy


def test_it_is_the_file_and_stays_so(tmp_path):
    file = tmp_path / "library.so"
    content = os.urandom(3_000_000)
    file.write_bytes(content)
    copy = sealed_copy(file)
    try:
        path = f"/proc/self/fd/{copy}"
        with open(path, "rb") as reader:  # noqa: PTH123 - the path of a descriptor
            assert reader.read() == content
        with pytest.raises(OSError):
            os.pwrite(copy, b"x", 0)
        with pytest.raises(OSError):
            os.ftruncate(copy, 0)
        with pytest.raises(OSError):
            mmap.mmap(copy, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(copy)
