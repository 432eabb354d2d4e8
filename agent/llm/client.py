"""Completions through LiteLLM, with retries and prices of our own; and the client for any model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent.llm.failure import (
    ModelError,
    ModelInterruptedError,
    ModelRefusedError,
    ModelUnavailableError,
    RetryPolicy,
    Transient,
    judge_failure,
)
from agent.llm.library import BrokenOffError, NotStreamedError, litellm, streamed
from agent.llm.pricing import INPUT_PRICE, OUTPUT_PRICE, Arguments, answer_cost_usd
from agent.llm.providers import PROVIDERS, split_model
from agent.record.completion import (
    Completion,
    CompletionRequest,
    ModelClient,
    Tell,
    Usage,
    apart,
    estimated_tokens,
    unheard,
)
from problems.errors import UsageError

DEFAULT_TIMEOUT_S = 600.0
"""For one request, from byte to byte; `--model-args timeout=...` sets another."""
_OURS = frozenset({INPUT_PRICE, OUTPUT_PRICE, "timeout"})
_FREE = Usage(cost_usd=0.0)


class LiteLLMClient:
    """Answers requests through LiteLLM. Safe to share between threads."""

    def __init__(
        self,
        *,
        policy: RetryPolicy | None = None,
        stop: threading.Event | None = None,
        sleep: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stop`, once set, ends every wait with `ModelInterruptedError`; a request that is on its
        way finishes. `sleep` waits the given seconds and says whether `stop` was set."""
        self._policy = policy or RetryPolicy()
        self._stop = stop or threading.Event()
        self._sleep = sleep or self._stop.wait
        self._clock = clock
        self._unstreamed: set[str] = set()
        """Models whose answers have to be taken whole."""

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """Answer `request`, trying again where that can help; `tell` hears why and when.

        Raises `ModelUnavailableError` when the retries are used up, `ModelRefusedError` or
        `PromptRefusedError` at once where they can't help, `ModelInterruptedError` on stop; each
        with the `usage` that was billed for answers that could not be used.
        """
        wasted: list[Usage] = []  # billed answers that hold no choice to read
        try:
            return self._until_answered(request, tell, so_far, wasted)
        except ModelError as error:
            if wasted:
                error.usage = sum(wasted, _FREE)
            raise

    def _until_answered(
        self, request: CompletionRequest, tell: Tell, so_far: Tell, wasted: list[Usage]
    ) -> Completion:
        began = self._clock()
        attempt = 0
        while True:
            if self._stop.is_set():
                place = f"{request.problem}, sample {request.sample}, turn {request.turn}"
                raise ModelInterruptedError(f"stopped before asking {request.model} for {place}")
            attempt += 1
            outcome = self._ask(request, so_far)
            if isinstance(outcome, Transient):
                failure = outcome
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                usage = _usage(request, outcome)
                if _has_choice(outcome):
                    seconds = self._clock() - began
                    return _completion(request, outcome, [*wasted, usage], attempt, seconds)
                failure = Transient("an answer without a choice")
                wasted.append(usage)
            self._wait(request, failure, attempt, began, tell)

    def _ask(self, request: CompletionRequest, so_far: Tell) -> Any:
        """One request: LiteLLM's response, or what its failure means (not raised here, so that
        no exception of LiteLLM's, which may quote a key, hangs on to ours). None: an answer that
        came whole where a stream was asked for, and cannot be read."""
        library = litellm()
        from openai import OpenAIError  # the base of all that LiteLLM raises

        arguments = {k: v for k, v in request.arguments.items() if k not in _OURS and v is not None}
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
        try:
            if request.seed is not None and takes_seed(request.model):
                arguments["seed"] = request.seed
            asked = {
                "model": request.model,
                "messages": [message.model_dump() for message in request.messages],
                "timeout": float(request.arguments.get("timeout") or DEFAULT_TIMEOUT_S),
                "max_retries": 0,
                "num_retries": 0,
                **arguments,
            }
            if request.model in self._unstreamed:
                return library.completion(**asked)
            return streamed(library, asked, so_far)
        except BrokenOffError as broken:
            return Transient(str(broken))
        except NotStreamedError:
            self._unstreamed.add(request.model)
            return None
        except OpenAIError as error:
            # In the midst of a stream LiteLLM wraps the provider's error.
            failure = judge_failure(
                getattr(error, "original_exception", None) or error, request.model
            )
        refused = isinstance(failure, ModelRefusedError) and "stream" in str(failure).lower()
        if refused and request.model not in self._unstreamed:
            self._unstreamed.add(request.model)
            return self._ask(request, so_far)
        return failure

    def _wait(
        self,
        request: CompletionRequest,
        failure: Transient,
        attempt: int,
        began: float,
        tell: Tell,
    ) -> None:
        key = f"{request.seed}:{request.problem}:{request.sample}:{request.turn}"
        delay_s = self._policy.delay_s(attempt, failure.retry_after_s, key)
        spent_s = self._clock() - began
        given_up = ""
        if attempt >= self._policy.attempts:
            given_up = f"no answer after {attempt} requests in {spent_s:.0f} s"
        elif spent_s + delay_s > self._policy.total_s:
            given_up = f"would have to wait {delay_s:.0f} s more after {spent_s:.0f} s"
        if given_up:
            raise ModelUnavailableError(
                f"{request.model}: {given_up}; the last failure: {failure.reason}"
            )
        tell(f"{failure.reason}; {request.model} is asked again in {delay_s:.0f} s")
        if self._sleep(delay_s):
            raise ModelInterruptedError(
                f"stopped while waiting to ask {request.model} again: {failure.reason}"
            )


def make_client(
    model: str,
    args: Arguments,
    *,
    run_dir: Path | None = None,
    stop: threading.Event | None = None,
) -> ModelClient:
    """The client for a run that asks `model`. Raises `UsageError` as `check_model` does, and where
    `replay/RUN` would answer from `run_dir`, the run that is being made."""
    from agent.llm.check import check_model

    check_model(model, args)
    provider, name = split_model(model)
    replayed = Path(name).resolve() if provider is PROVIDERS["replay"] else None
    if run_dir is not None and replayed == run_dir.resolve():
        raise UsageError(f"{model} would answer from the run that it makes; set -o")
    stop = stop or threading.Event()
    return LiteLLMClient(stop=stop) if provider is None else provider.client(name, stop)


@lru_cache(maxsize=64)
def takes_seed(model: str) -> bool:
    """Whether the provider knows `seed`. A seed is a wish: it is sent where it is understood."""
    library = litellm()
    name, provider, *_ = library.get_llm_provider(model)
    return "seed" in (library.get_supported_openai_params(name, provider) or ())


def _has_choice(response: Any) -> bool:
    choices: Any = getattr(response, "choices", None)
    return bool(choices) and getattr(choices[0], "message", None) is not None


def _completion(
    request: CompletionRequest, response: Any, billed: list[Usage], attempts: int, seconds: float
) -> Completion:
    choice = response.choices[0]
    message = choice.message
    thought = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    text, tagged = apart(str(message.content or "").lstrip("\n"))
    return Completion(
        text=text,
        reasoning="\n\n".join(part for part in (str(thought or "").strip(), tagged) if part),
        finish_reason=str(choice.finish_reason or "stop"),
        model_asked=request.model,
        model_answered=str(getattr(response, "model", None) or request.model),
        usage=sum(billed, _FREE),
        seconds=seconds,
        attempts=attempts,
    )


def _usage(request: CompletionRequest, response: Any) -> Usage:
    """What the provider counted; by rule of thumb where a server counts nothing."""
    counted = getattr(response, "usage", None)
    prompt_tokens = getattr(counted, "prompt_tokens", None) or 0
    completion_tokens = getattr(counted, "completion_tokens", None) or 0
    if not prompt_tokens and not completion_tokens:
        prompt_tokens = estimated_tokens(message.content for message in request.messages)
        if _has_choice(response):
            completion_tokens = estimated_tokens([str(response.choices[0].message.content or "")])
    thinking = getattr(counted, "completion_tokens_details", None)
    cached = getattr(counted, "prompt_tokens_details", None)
    usage = Usage(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        reasoning_tokens=getattr(thinking, "reasoning_tokens", None) or 0,
        cached_tokens=getattr(cached, "cached_tokens", None) or 0,
    )
    cost_usd = answer_cost_usd(request.arguments, usage, response)
    return usage.model_copy(update={"cost_usd": cost_usd})
