"""What tests need that compile for a GPU."""

from __future__ import annotations

import pytest

from evaluator.builder.toolchain import find_tool

needs_nvcc = pytest.mark.skipif(find_tool("nvcc") is None, reason="nvcc is not installed")
