"""A kernel's plain name: no return type, namespace of the file, template arguments, parameters."""

from __future__ import annotations


def base_name(name: str) -> str:
    # Nsight Compute 2025.3 leaves the first bracket of `<unnamed>` out.
    for unnamed in ("(anonymous namespace)::", "<unnamed>::", "unnamed>::"):
        name = name.replace(unnamed, "")
    plain, depth = "", 0
    for char in name:
        if char == "<":
            depth += 1
        elif char == ">":
            depth = max(0, depth - 1)
        elif depth == 0:
            if char == "(":
                break
            plain += char
    words = plain.split()
    return words[-1] if words else name
