"""The places in a model where a kernel stands, and what they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from agent.deployment.load import may_fit
from agent.deployment.loaded_kernel import LoadedKernel
from agent.record.proof import Proof
from agent.recording.recorded_calls import submodule
from problems.errors import UsageError


@dataclass(frozen=True)
class Places:
    whole: nn.Module
    loaded: dict[str, LoadedKernel]
    """By the name of what each replaces; an empty name is all of the model."""

    def put(self, kernel: bool) -> nn.Module:
        """The model with the kernel, or as it was."""
        for name, each in self.loaded.items():
            above, _, last = name.rpartition(".")
            if name:
                self.whole.get_submodule(above)._modules[last] = each if kernel else each.original
        return self.loaded.get("", self.whole) if kernel else self.whole

    @classmethod
    def of(
        cls,
        model: nn.Module,
        only: str | None,
        proof: Proof,
        load: Callable[[nn.Module], LoadedKernel],
    ) -> Places:
        """The one of that name, or all that the kernel fits, but nothing inside another one.

        Raises `UsageError` where there is none, with what was said of the last one that looked so.
        """
        loaded: dict[str, LoadedKernel] = {}
        made = {} if only is None else {(named := submodule(model, only)): load(named)}
        refused: Exception | None = None
        for name, each in model.named_modules(remove_duplicate=False):
            if any(not outer or name.startswith(f"{outer}.") for outer in loaded):
                continue
            if only is None and each not in made and may_fit(proof, each):
                try:
                    made[each] = load(each)
                except Exception as error:  # noqa: BLE001  (so does a module that takes other inputs)
                    refused = error
            if each in made:
                loaded[name] = made[each]
        if not loaded:
            hint = f": {refused}" if refused else ": none has such parts and weights"
            raise UsageError(f"the kernel fits no module of {type(model).__name__}{hint}")
        return cls(model, loaded)
