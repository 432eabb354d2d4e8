"""A kernel's plain name: no return type, namespace of the file, template arguments, parameters."""

from __future__ import annotations

import re


def base_name(name: str) -> str:
    """Of a name as compilers and profilers print it."""
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


def mangled_base_name(mangled: str) -> str:
    """Of a name as a library holds it, without any namespace."""
    if not mangled.startswith("_Z"):
        return mangled
    rest = mangled.removeprefix("_Z").removeprefix("N")
    name = mangled
    while match := re.match(r"\d+", rest):
        start, end = match.end(), match.end() + int(match[0])
        name, rest = rest[start:end], rest[end:]
        if not mangled.startswith("_ZN"):
            break
    return name
