"""The reference: a problem's module, its secret inputs, and what they should lead to.

Runs in the judge only. A problem file is the user's own code and is trusted.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from evaluator.backend_flags import BackendFlags
from evaluator.errors import UnusableReferenceError
from evaluator.judge.blockwise import close, same
from evaluator.judge.problem.problem_file import ProblemFile, is_out_of_memory
from evaluator.judge.problem.variation import FACTORS, Variation, base, kind_of
from evaluator.protocol import RULES, Rules
from evaluator.settings import Precision
from evaluator.worker import values
from evaluator.worker.initial_values import repeated_initial_values
from evaluator.worker.random_constants import STATISTICS, around, random_constants

WEIGHT_SEED = 42
"""Public: KernelBench's contract relies on it."""
_SAME_BY_LUCK = 1e-3
"""Share of random fp32 numbers, far above what two seeds have in common."""
DTYPES = {
    Precision.FP32: torch.float32,
    Precision.TF32: torch.float32,
    Precision.FP16: torch.float16,
    Precision.BF16: torch.bfloat16,
}


def flatten(value: Any) -> list[torch.Tensor]:
    """The tensors in a result of the reference's, as a worker finds them in a candidate's."""
    try:
        return values.flatten(value, trusted=True)
    except TypeError as error:
        raise UnusableReferenceError(f"the reference's {error}") from None


def flatten_arguments(values: list[Any]) -> list[torch.Tensor]:
    return flatten([v for v in values if isinstance(v, torch.Tensor)]) + [
        tensor
        for value in values
        if isinstance(value, list | tuple)
        for tensor in flatten_arguments(list(value))
    ]


@contextmanager
def buffers_kept(module: torch.nn.Module) -> Iterator[None]:
    """Running statistics move in train mode; a judged call must not depend on earlier ones."""
    saved = [buffer.detach().clone() for buffer in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(module.buffers(), saved, strict=True):
                buffer.copy_(value)


class Reference:
    """One problem on one device in one precision.

    `seeded` is its state as the public seed constructs it, on the CPU. What it computes with is
    randomised: secret parameters and running statistics, so that a candidate that ignores a bias
    can't pass. Raises `UnusableReferenceError` when the file does not do what a problem file must.
    """

    def __init__(
        self,
        source: str,
        device: torch.device,
        precision: Precision,
        rules: Rules = RULES["refinery"],
    ) -> None:
        """`rules`: whether operations in fp32 may use TF32, and whether initial values are drawn as
        PyTorch draws them, however long it takes."""
        self.source = source
        self.device = device
        self.dtype = DTYPES[precision]
        self.problem = ProblemFile(source)
        self.initial_arguments = self.problem.initial_arguments()
        self.rules = rules
        self._public = True
        self._unused: torch.nn.Module | None = None
        """A module that has made no calls; only where that matters."""
        self._first_buffers: dict[str, torch.Tensor] = {}
        """What its buffers hold then."""
        self._undoes = True
        self.model = self._constructed(WEIGHT_SEED)
        self.seeded = {name: tensor.detach().clone() for name, tensor in self.floating()}
        self.weight_bytes = sum(int(tensor.nbytes) for tensor in self.seeded.values())
        self.model.to(device)
        self._spreads = {name: _centre_and_spread(t.detach()) for name, t in self.floating()}
        self.flags = BackendFlags(rules.allows_tf32, rules.allows_tf32 or rules.pytorch_flags)
        self.changes_inputs = False
        self.only_seed: int | None = None
        """Where shapes of outputs depend on values: the seed that all inputs are made from."""
        self.state_changes = 0

    def _constructed(self, seed: int, *, constants: bool = False) -> torch.nn.Module:
        """A module on the CPU. `constants`: those among its weights are random, too."""
        torch.manual_seed(seed)
        plain = contextlib.nullcontext()
        repeated = plain if self.rules.in_one_process else repeated_initial_values()
        with repeated, random_constants(seed) if constants else plain:
            try:
                module = self.problem.module.Model(*self.initial_arguments)
            except Exception as error:
                if is_out_of_memory(error):
                    raise torch.OutOfMemoryError(str(error)) from None
                raise UnusableReferenceError(f"Model(...) raised {error!r}") from error
        made: torch.nn.Module = module.to(dtype=self.dtype)
        return made

    def construct(self, seed: int) -> None:
        """Start again from a module as this seed constructs it, with random constants."""
        self._replace(self._constructed(seed, constants=True), public=False)

    def construct_publicly(self) -> None:
        """Start again from the public seed's module, if the present one is another's."""
        if not self._public:
            self._replace(self._constructed(WEIGHT_SEED), public=True)

    def _replace(self, module: torch.nn.Module, *, public: bool) -> None:
        self.model = module.to(self.device)
        self._public = public
        self.state_changes += 1
        if self._unused is not None:
            self._unused = copy.deepcopy(self.model)
            self._first_buffers = self._buffers()

    def keep_state(self) -> None:
        """The module keeps a state from call to call, which `restart` undoes from now on."""
        self._unused = self._constructed(WEIGHT_SEED).to(self.device)
        self._first_buffers = self._buffers()
        self.restart()

    def restart(self) -> None:
        """Go back to a module that has made no calls, with the weights that it has now."""
        if self._unused is not None:
            weights = self.state() | self._first_buffers
            self.model = copy.deepcopy(self._unused)
            self.set_state(weights)

    def undoing(self, model: torch.nn.Module) -> contextlib.AbstractContextManager[None]:
        """Within it, calls of `model` leave its buffers as they were, unless they are a state."""
        undone = self._undoes and self._unused is None
        return buffers_kept(model) if undone else contextlib.nullcontext()

    def carries_buffers(self, call: Callable[[], list[torch.Tensor]]) -> bool:
        """Whether what a call does to the module's buffers shows in the next one's outputs.

        The running statistics of a batch norm in train mode do not. `call` calls `expected`.
        """
        before = [buffer.detach().clone() for buffer in self.model.buffers()]
        if not before:
            return False
        with buffers_kept(self.model):
            self._undoes = False
            try:
                outputs = call()
                if all(map(same, before, self.model.buffers())):
                    return False
                pairs = zip(outputs, call(), strict=True)
                return not all(close(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs)
            finally:
                self._undoes = True

    def _buffers(self) -> dict[str, torch.Tensor]:
        floating = self.state()
        return {
            name: floating[name].clone()
            for name, _ in self.model.named_buffers()
            if name in floating
        }

    def fixed_parameters(self) -> list[str]:
        """Names of parameters of which more is as the public seed constructs it than by luck."""
        return [
            name
            for name, tensor in self.model.named_parameters()
            if name in self.seeded
            and float((tensor.cpu() == self.seeded[name]).double().mean()) > _SAME_BY_LUCK
        ]

    def floating(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The parameters and buffers that hold floating-point or complex numbers, by name."""
        for name, tensor in [*self.model.named_parameters(), *self.model.named_buffers()]:
            if tensor.is_floating_point() or tensor.is_complex():
                yield name, tensor

    def state(self) -> dict[str, torch.Tensor]:
        return {name: tensor.detach() for name, tensor in self.floating()}

    def set_state(self, state: dict[str, torch.Tensor]) -> None:
        self._fill(iter(state.items()))

    def load(self, path: Path) -> None:
        """Take the weights of a file. Raises `UnusableReferenceError` where they do not fit."""
        own = self.model.state_dict()
        try:
            given = load_file(path)
            # A candidate is given no integers, so the reference keeps its own.
            chosen = {n: v if v.is_floating_point() else own.get(n, v) for n, v in given.items()}
            self.model.load_state_dict(chosen)
        except (OSError, SafetensorError, RuntimeError) as error:
            raise UnusableReferenceError(
                f"the weights {path} do not fit Model; save its state_dict there, or move the "
                f"file away: {' '.join(str(error).split())}"
            ) from None
        self.set_state({})  # whoever keeps something of it learns that it changed

    def randomise(self, seed: int) -> None:
        """Give the model other parameters and running statistics of the same kind of spread."""
        self._fill(self._random(seed))

    def randomised(self, seed: int) -> dict[str, torch.Tensor]:
        return dict(self._random(seed))

    def _fill(self, values: Iterator[tuple[str, torch.Tensor]]) -> None:
        own = dict(self.floating())
        with torch.no_grad():
            for name, value in values:
                own[name].copy_(value)
        self.state_changes += 1
        if self._unused is not None:
            self._first_buffers = self._buffers()

    def _random(self, seed: int) -> Iterator[tuple[str, torch.Tensor]]:
        """One tensor after the other, in the task's dtype.

        Constant ones (a zero bias, a unit scale) get a spread of their own; variances are spread
        from a sixteenth to four times their mean. Other buffers (tables, masks) stay as they are.
        """
        generator = torch.Generator(device=self.device).manual_seed(seed)
        parameters = {name for name, _ in self.model.named_parameters()}
        for name, tensor in self.seeded.items():
            leaf = name.rsplit(".", 1)[-1]
            if name not in parameters and leaf not in STATISTICS:
                yield name, tensor
                continue
            centre, spread = self._spreads[name]
            noise = torch.rand(
                tensor.shape, generator=generator, dtype=torch.float32, device=self.device
            )
            if leaf == "running_var" or spread == 0.0:
                new = around(noise, centre, variance=leaf == "running_var")
            else:
                # Uniform with the same mean and standard deviation.
                new = noise.sub_(0.5).mul_(spread * 12**0.5).add_(centre)
            yield name, new.to(tensor.dtype)

    def fresh_inputs(self, seed: int) -> list[Any]:
        """Arguments of one forward call, made on the device where the file lets that happen."""
        seed = seed if self.only_seed is None else self.only_seed
        # `torch.manual_seed` seeds kinds of devices that are not there as well, which takes longer
        # than a short kernel and all that belongs to its call.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)
        with _other_generators_seeded(seed):
            return self.problem.inputs(self.device, self.dtype)

    def varied_inputs(self, seed: int) -> list[Any]:
        """The same, with other scales and near repeats, as `Variation` says for this seed."""
        with Variation(seed):
            values = self.fresh_inputs(base(seed))
        factor = FACTORS.get(kind_of(seed))
        if factor is not None:
            for tensor in flatten_arguments(values):
                if tensor.is_floating_point():
                    tensor.mul_(factor)
        return values

    def expected(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Outputs in the task's dtype; a module that works in place changes `arguments`."""
        with torch.no_grad(), self.undoing(self.model), self.flags.added():
            return flatten(self.model(*arguments))

    def run(self, arguments: list[Any], random_seed: int | None = None) -> list[torch.Tensor]:
        """`expected`, from this seed of PyTorch's generators. Raises `UnusableReferenceError` where
        forward raises, and `torch.OutOfMemoryError`."""
        if random_seed is not None:
            torch.manual_seed(random_seed)
        try:
            return self.expected(arguments)
        except Exception as error:
            if is_out_of_memory(error):
                raise torch.OutOfMemoryError(str(error)) from None
            raise UnusableReferenceError(f"the reference's forward raised {error!r}") from error


@contextlib.contextmanager
def _other_generators_seeded(seed: int) -> Iterator[None]:
    """A problem file may draw inputs with Python's generator or NumPy's. Afterwards these go on
    where they were, so that a forward that draws from them does not repeat itself."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _centre_and_spread(tensor: torch.Tensor) -> tuple[float, float]:
    """Mean and standard deviation; of a constant tensor exactly its value and 0."""
    if tensor.numel() == 0:
        return 0.0, 0.0
    real = tensor.real if tensor.is_complex() else tensor
    low, high = (float(bound) for bound in real.aminmax())
    if low == high:
        return low, 0.0
    spread, centre = torch.std_mean(real.float())
    return float(centre), float(spread)
