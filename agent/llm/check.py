"""A model's name, key and arguments, looked at before any work is done."""

from __future__ import annotations

import difflib
import os
import threading
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from agent.llm.failure import one_line
from agent.llm.library import litellm
from agent.llm.pricing import INPUT_PRICE, OUTPUT_PRICE, Arguments, explicit_prices
from agent.llm.providers import PROVIDERS, split_model
from problems.errors import UsageError

CATALOGUES = frozenset({"openai", "anthropic", "gemini", "deepseek", "mistral", "xai"})
"""Providers whose models LiteLLM lists. Others (a server of one's own, routers, clouds with
deployments) take any name."""

CLOUDS = frozenset({"bedrock", "bedrock_converse", "sagemaker", "vertex_ai"})
"""Providers that find credentials in profiles, files and roles as well."""

NOT_YOURS = {
    "model": "it is --model",
    "messages": "the prompt is made by the run",
    "temperature": "it is --temperature",
    "seed": "it is --seed",
    "api_key": "it would be recorded; set the provider's environment variable",
    "max_retries": "retries are the run's own",
    "num_retries": "retries are the run's own",
    "fallbacks": "another model would be another experiment",
    "drop_params": "a parameter that is dropped silently changes the experiment",
    "stream": "every answer is taken as a stream, if the server has one",
    "stream_options": "the run asks for the count of tokens",
    "n": "every completion is a call of its own; set --budget",
    "mock_response": "for answers of your own use relay/ or replay/",
}
"""`--model-args` that are refused, and why."""


def check_model(model: str, args: Arguments, *, temperature: float | None = None) -> None:
    """Raise `UsageError` where `model` can't be asked with `args`; nothing is sent anywhere.

    Looked at: provider and name (with the nearest one that exists), the key's environment
    variable, parameters that the model doesn't know, prices, and the targets of our own providers.
    """
    for name in args:
        if name in NOT_YOURS:
            raise UsageError(f"--model-args {name} is not accepted: {NOT_YOURS[name]}")
    explicit_prices(args)
    _check_seconds(args)
    provider, name = split_model(model)
    if provider is not None:
        for argument in args:
            if argument not in provider.arguments:
                raise UsageError(f"{model} takes no {argument}; leave out --model-args {argument}")
        if not name:
            raise UsageError(f"{model} names nothing; see docs/models.md")
        provider.client(name, threading.Event())
        return
    library = litellm()
    name, prefix = _provider_of(library, model)
    _check_catalogue(library, model, name, prefix, args)
    _check_key(library, model, prefix, args)
    _check_parameters(library, model, name, prefix, args, temperature)


def _check_seconds(args: Arguments) -> None:
    for name, least, try_ in (("timeout", 1e-9, "600"), ("wait", 0, "0")):
        seconds = args.get(name)
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (number and seconds >= least):  # type: ignore[operator]
            raise UsageError(f"{name}={seconds} is not a number of seconds; try {name}={try_}")


def _provider_of(library: Any, model: str) -> tuple[str, str]:
    """(name, provider), as LiteLLM reads `model`."""
    from openai import OpenAIError

    try:
        name, provider, *_ = library.get_llm_provider(model)
    except OpenAIError:
        pass
    else:
        if name:
            return str(name), str(provider)
        raise UsageError(f"{model} names no model; write {provider}/MODEL")
    prefix, slash, rest = model.partition("/")
    providers = [str(getattr(p, "value", p)) for p in library.provider_list]
    if slash:
        near = difflib.get_close_matches(prefix, [*PROVIDERS, *providers], 1)
        hint = f"did you mean {near[0]}/{rest}?" if near else "write PROVIDER/MODEL"
        raise UsageError(f"LiteLLM knows no provider {prefix!r}; {hint} (docs/models.md)")
    raise UsageError(
        f"LiteLLM knows no model {model!r}; {_nearest(model, library.model_cost)}write"
        " PROVIDER/MODEL (docs/models.md)"
    )


def _check_catalogue(library: Any, model: str, name: str, prefix: str, args: Arguments) -> None:
    elsewhere = args.get("api_base") or os.environ.get(f"{prefix.upper()}_API_BASE")
    elsewhere = elsewhere or os.environ.get(f"{prefix.upper()}_BASE_URL")
    if prefix not in CATALOGUES or elsewhere or explicit_prices(args):
        return
    listed = {
        key.removeprefix(f"{prefix}/")
        for key, entry in library.model_cost.items()
        if entry.get("litellm_provider") == prefix and entry.get("mode") in ("chat", "responses")
    }
    if name in listed or name.startswith("ft:"):
        return
    raise UsageError(
        f"LiteLLM {version('litellm')} does not list {name!r} for {prefix};"
        f" {_nearest(name, listed, f'{prefix}/')}if it exists all the same, state its prices:"
        f" --model-args {INPUT_PRICE}=... --model-args {OUTPUT_PRICE}=..."
    )


def _check_key(library: Any, model: str, prefix: str, args: Arguments) -> None:
    if prefix in CLOUDS:  # credentials have many sources there; the first call shows
        if prefix.startswith(("bedrock", "sagemaker")) and find_spec("boto3") is None:
            raise UsageError(f"{model} needs Amazon's library; pip install boto3")
        return
    if prefix == "anthropic" and os.environ.get("ANTHROPIC_AUTH_TOKEN"):
        return
    base = args.get("api_base")
    found = library.validate_environment(model, api_base=base)
    # AZURE_API_BASE may be given as api_base, and so on.
    given = tuple(f"_{name.upper()}" for name in args)
    missing = [name for name in found["missing_keys"] if not (given and name.endswith(given))]
    if prefix == "ollama" or not missing:  # ollama has a default address
        return
    own = "" if base is None else " (any text, if your server asks for none)"
    raise UsageError(
        f"{model} needs {' and '.join(missing)} in the environment; export {missing[0]}=...{own}"
    )


def _check_parameters(
    library: Any, model: str, name: str, prefix: str, args: Arguments, temperature: float | None
) -> None:
    from openai import OpenAIError

    known = {*library.OPENAI_CHAT_COMPLETION_PARAMS, "timeout", "api_base", "api_version"}
    for argument in args:
        near = difflib.get_close_matches(argument, known, 1, 0.9)
        if argument not in known and near:
            raise UsageError(f"--model-args {argument}: did you mean {near[0]}?")
    sent = {key: value for key, value in args.items() if key in known and value is not None}
    for ours in ("timeout", "api_base", "api_version"):
        sent.pop(ours, None)
    if temperature is not None:
        sent["temperature"] = temperature
    try:
        library.utils.get_optional_params(model=name, custom_llm_provider=prefix, **sent)
    except OpenAIError as error:
        said = one_line(str(error)).partition(" To drop these")[0].rstrip(" ,.")
        raise UsageError(f"{model}: {said}; leave it out or choose another model") from None


def _nearest(name: str, names: Any, prefix: str = "") -> str:
    near = difflib.get_close_matches(name, list(names), 1)
    return f"did you mean {prefix}{near[0]}? " if near else ""
