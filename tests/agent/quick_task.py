"""A task whose kernels are judged quickly: it is small, and they are PyTorch's own operators."""

from tests.task import as_candidate, task

QUICK_TASK = task("return torch.relu(x) * 2.0", x="torch.randn(16, 32)")
_BODIES = (
    "return torch.relu(x) * 2.0",
    "return torch.relu(x * 2.0)",
    "return x.clamp(min=0.0) * 2.0",
)
QUICK_ANSWERS = tuple(
    f"```python\n{as_candidate(task(body, x='torch.randn(16, 32)'))}```" for body in _BODIES
)
"""Answers of a model. Each has another correct kernel."""
