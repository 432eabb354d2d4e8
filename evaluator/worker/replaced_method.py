"""Another method in the place of one of PyTorch's, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replaced_method(owner: type, name: str, method: object) -> Iterator[None]:
    """While this lasts, a class has this method, in place of its own or of one that it inherits."""
    own = vars(owner).get(name)
    setattr(owner, name, method)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
