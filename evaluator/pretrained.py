"""Hugging Face models that a problem names: built from their configurations, never from weights.

KernelBench's level 4 calls `from_pretrained`. A judge gives every model weights of its own, so the
configuration is all that it needs. The judge's process may ask the hub for one. A worker has no
network: it knows the configurations that the judge has found, and no others.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluator.errors import UnusableReferenceError
from problems.cache_folder import cache_folder, keep

Configuration = dict[str, Any]
"""What a `config.json` holds."""
Configurations = dict[str, Configuration]
"""Each by the name that the problem gives."""
_Found = tuple[Configuration, dict[str, Any]]
"""With the options that finding it did not use up."""
_Find = Callable[..., _Found]
_IMPORTS = re.compile(r"^\s*(?:from|import)\s+transformers\b", re.MULTILINE)
_HUB = frozenset(
    ("cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token")
)
"""Options that say where a file is looked for. `get_config_dict` uses them up."""
_found: list[Configurations] = []
"""The configurations of the problem that was begun last."""


def imports_transformers(source: str) -> bool:
    return _IMPORTS.search(source) is not None


def find_configurations() -> Configurations:
    """From now on `from_pretrained` builds a model from its configuration, in a trusted process.

    Until the next call the result grows as configurations are found: in a local folder, in the
    hub's cache, or on the hub. Raises `UnusableReferenceError` where `transformers` is missing; a
    later `from_pretrained` raises it where there is no configuration.
    """
    try:
        from transformers import PreTrainedConfig
    except ImportError as error:
        raise UnusableReferenceError(
            f"the problem needs transformers ({error}): pip install transformers"
        ) from None
    original = PreTrainedConfig.get_config_dict.__func__

    def find(cls: type, name: Any, **options: Any) -> _Found:
        try:
            values, rest = original(cls, name, **options)
        except OSError as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise UnusableReferenceError(
                f"the configuration of {name} cannot be read ({said}): run `hf download {name}"
                " config.json`, or name a local folder that holds a config.json"
            ) from None
        _found[-1][str(name)] = copy.deepcopy(values)
        digest = hashlib.sha256(str(name).encode()).hexdigest()[:16]
        # For a target; where nothing can be kept, it will miss it, and say so.
        keep(_kept() / f"{digest}.json", json.dumps({"name": str(name), "values": values}))
        return values, rest

    if original.__module__ != __name__:
        _install(find)
    _found[:] = [{}]
    return _found[-1]


def kept_for(source: str) -> Configurations:
    """Those that a judge has found whose names occur in a problem's source."""
    kept = [json.loads(file.read_text()) for file in _kept().glob("*.json")]
    return {each["name"]: each["values"] for each in kept if each["name"] in source}


def _kept() -> Path:
    return cache_folder() / "configurations"


def know_configurations(known: Configurations) -> None:
    """The same in a worker, which knows these configurations and no others.

    A later `from_pretrained` raises `OSError` for any other name.
    """

    def find(cls: type, name: Any, **options: Any) -> _Found:
        if str(name) not in known:
            names = ", ".join(known) or "none"
            raise OSError(f"no configuration of {name} here; the problem's own: {names}")
        return copy.deepcopy(known[str(name)]), {k: v for k, v in options.items() if k not in _HUB}

    _install(find)


def _install(find: _Find) -> None:
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers.models.auto import auto_factory

    PreTrainedConfig.get_config_dict = classmethod(find)
    # Where peft is installed, it looks for an adapter beside the weights: there are none.
    auto_factory.find_adapter_config_file = lambda *_, **__: None
    PreTrainedModel.from_pretrained = classmethod(_from_configuration)


def _from_configuration(
    cls: Any,
    /,
    name: Any,
    *_: Any,
    config: Any = None,
    attn_implementation: Any = None,
    **options: Any,
) -> Any:
    """In place of `PreTrainedModel.from_pretrained`: weights come from the seed that is in force.

    They are fp32, whatever the configuration says: the run's precision decides.
    """
    import torch

    if not is_configuration(config):
        config = cls.config_class.from_pretrained(config or name, **options)
    chosen = {} if attn_implementation is None else {"attn_implementation": attn_implementation}
    # As `from_pretrained` leaves a model, and its caller's configuration.
    return cls._from_config(copy.deepcopy(config), dtype=torch.float32, **chosen).eval()


def is_configuration(value: Any) -> bool:
    """Whether a value is a configuration of a model; `transformers` is not imported for that."""
    package = sys.modules.get("transformers")
    return package is not None and isinstance(value, package.PreTrainedConfig)


def to_values(configuration: Any) -> Configuration:
    values: Configuration = json.loads(configuration.to_json_string(use_diff=False))
    return values


def from_values(values: Configuration) -> Any:
    from transformers import AutoConfig

    return AutoConfig.for_model(**values)
