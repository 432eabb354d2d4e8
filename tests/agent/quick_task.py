"""A task whose kernels are judged quickly: it is small, and they are PyTorch's own operators."""

from tests.task import task

QUICK_TASK = task("return torch.relu(x) * 2.0", x="torch.randn(16, 32)")
