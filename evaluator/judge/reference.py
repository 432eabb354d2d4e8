"""The reference: a problem's module, its secret inputs, and what they should lead to.

Runs in the judge only. A problem file is the user's own code and is trusted.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from typing import Any, Literal

import torch

from evaluator.errors import UnusableReferenceError
from evaluator.evaluation import Precision
from evaluator.judge.kept_buffers import buffers_kept
from evaluator.judge.problem_file import ProblemFile, converted
from evaluator.judge.variation import Variation, base

WEIGHT_SEED = 42
"""Public: KernelBench's contract relies on it."""
DTYPES = {
    Precision.FP32: torch.float32,
    Precision.TF32: torch.float32,
    Precision.FP16: torch.float16,
    Precision.BF16: torch.bfloat16,
}
Source = Literal["fp64", "fp64_sliced", "fp64_cpu", "task_precision"]


def flatten(value: Any) -> list[torch.Tensor]:
    """The tensors in a result, in order, a dict's by its keys; Python numbers as 0-dim tensors."""
    if isinstance(value, torch.Tensor):
        return [value.detach()]
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in flatten(item)]
    if isinstance(value, dict):
        # Dicts are equal whatever the order in which their keys were set.
        ordered = sorted(value, key=str)
        return [tensor for key in ordered for tensor in flatten(value[key])]
    if isinstance(value, bool | int | float):
        return [torch.tensor(value)]
    raise UnusableReferenceError(f"the reference returns a {type(value).__name__}")


def flatten_arguments(values: list[Any]) -> list[torch.Tensor]:
    """The tensors among forward's arguments."""
    return flatten([v for v in values if isinstance(v, torch.Tensor)]) + [
        tensor
        for value in values
        if isinstance(value, list | tuple)
        for tensor in flatten_arguments(list(value))
    ]


class Reference:
    """One problem on one device in one precision.

    Its state is kept twice: `seeded`, as the public seed constructs it, and `randomised`, with
    secret parameters and running statistics, so that one that ignores a bias can't pass.
    Raises `UnusableReferenceError` when the file does not do what a problem file must.
    """

    def __init__(self, source: str, device: torch.device, precision: Precision) -> None:
        self.source = source
        self.device = device
        self.dtype = DTYPES[precision]
        self.problem = ProblemFile(source)
        self.initial_arguments = self.problem.initial_arguments()
        torch.manual_seed(WEIGHT_SEED)
        try:
            module = self.problem.module.Model(*self.initial_arguments)
        except Exception as error:
            raise UnusableReferenceError(f"Model(...) raised {error!r}") from error
        self.model: torch.nn.Module = module.to(device=device, dtype=self.dtype)
        self.seeded = self.state()
        self._exact: torch.nn.Module | None = None
        self._exact_device: torch.device | None = device
        self.changes_inputs = False

    def _floating(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in [*self.model.named_parameters(), *self.model.named_buffers()]:
            if tensor.is_floating_point() or tensor.is_complex():
                yield name, tensor

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of the parameters and buffers that the model has now."""
        return {name: tensor.detach().clone() for name, tensor in self._floating()}

    def set_state(self, state: dict[str, torch.Tensor]) -> None:
        """Give the model these parameters and buffers."""
        with torch.no_grad():
            for name, tensor in self._floating():
                tensor.copy_(state[name])
        self._exact = None

    def randomised(self, seed: int) -> dict[str, torch.Tensor]:
        """Parameters and running statistics with other values of the same kind of spread.

        Constant ones (a zero bias, a unit scale) get a spread of their own; variances are spread
        from a sixteenth to four times their mean. Other buffers (tables, masks) stay as they are.
        """
        generator = torch.Generator().manual_seed(seed)
        parameters = {name for name, _ in self.model.named_parameters()}
        state = {}
        for name, tensor in self.seeded.items():
            leaf = name.rsplit(".", 1)[-1]
            if name not in parameters and leaf not in ("running_mean", "running_var"):
                state[name] = tensor
                continue
            old = tensor.double().cpu()
            spread = float(old.std()) if old.numel() > 1 else 0.0
            centre = float(old.mean()) if old.numel() else 0.0
            noise = torch.rand(old.shape, generator=generator, dtype=torch.float64)
            if leaf == "running_var":
                # Small ones among them: beside a variance of 1 no epsilon shows.
                new = (centre or 1.0) * 4.0 ** (3 * noise - 2)
            elif spread == 0.0 and centre > 0.0:
                new = centre * (0.5 + noise)
            elif spread == 0.0:
                new = centre + (noise - 0.5)
            else:
                # Uniform with the same mean and standard deviation.
                new = centre + (noise - 0.5) * spread * 12**0.5
            state[name] = new.to(device=tensor.device, dtype=tensor.dtype)
        return state

    def fresh_inputs(self, seed: int) -> list[Any]:
        """Arguments of one forward call, made on the device where the file lets that happen."""
        # `torch.manual_seed` seeds kinds of devices that are not there as well, which takes longer
        # than a short kernel and all that belongs to its call.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)
        return self.problem.inputs(self.device, self.dtype)

    def varied_inputs(self, seed: int) -> list[Any]:
        """The same, with other scales and near repeats, as `Variation` says for this seed."""
        with Variation(seed):
            return self.fresh_inputs(base(seed))

    def expected(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Outputs in the task's dtype; a module that works in place changes `arguments`."""
        with torch.no_grad(), buffers_kept(self.model):
            return flatten(self.model(*arguments))

    def exact(self, arguments: list[Any]) -> tuple[list[torch.Tensor] | None, Source]:
        """Outputs in fp64 and where they were made; None where the module can't run in fp64."""
        if self._exact_device is None:
            return None, "task_precision"
        try:
            return self._in_fp64(arguments, self._exact_device), (
                "fp64" if self._exact_device == self.device else "fp64_cpu"
            )
        except torch.OutOfMemoryError:
            pass
        except (RuntimeError, TypeError, ValueError, NotImplementedError):
            # Some modules name fp32 in their own forward; then the task's dtype must do.
            self._exact_device = None
            return None, "task_precision"
        self._exact = None
        gc.collect()
        torch.cuda.empty_cache()
        self._exact_device = torch.device("cpu")
        return self._in_fp64(arguments, self._exact_device), "fp64_cpu"

    def _in_fp64(self, arguments: list[Any], device: torch.device) -> list[torch.Tensor]:
        if self._exact is None:
            self._exact = copy.deepcopy(self.model).to(device=device, dtype=torch.float64)
        values = converted(arguments, device, torch.float64)
        # Made in the task's dtype and then widened: both references see the same numbers.
        with torch.no_grad(), buffers_kept(self._exact):
            return [tensor.to(self.device) for tensor in flatten(self._exact(*values))]
