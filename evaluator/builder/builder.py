"""The trusted builder: sources, flags and names in, a read-only shared library out.

A request is first compiled over the light headers (headers.py), and, where the first error may be
theirs, over PyTorch's own. Objects and libraries are kept by the content of everything that went
in, failures too, time-outs not. The compilers run behind walls (enclosure.py); which files they
read is checked afterwards, and what they say is withheld when one was none of the candidate's
business.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from evaluator.builder import headers
from evaluator.builder.cache import Cache
from evaluator.builder.diagnosis import cut_short
from evaluator.builder.enclosure import Enclosure
from evaluator.builder.flags import RefusedFlagError, device_flags, host_flags, link_flags
from evaluator.builder.sources import BadRequestError, Sources, arrange
from evaluator.builder.toolchain import Toolchain
from evaluator.builder.work_folder import sweep
from evaluator.builder.workshop import Flags, Workshop
from evaluator.errors import BuilderError
from evaluator.hardware.cores import usable_cores
from evaluator.ipc.build_request import BuildOutcome, BuildRequest

_MOST_BYTES = 4 * 2**30
"""Of libraries in the cache, and of objects."""


class Builder:
    """Builds candidates' extensions on this machine. Safe to call from several threads."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        jobs: int | None = None,
        cuda_arch: str | None = None,
    ) -> None:
        """`jobs`: compilers at once (None: one a core). `cuda_arch`: such as `9.0a`, None: no GPU.

        Raises BuilderError when `cache_dir` cannot be made.
        """
        self._folder = cache_dir.resolve()
        self._libraries = Cache(self._folder / "libraries", _MOST_BYTES)
        self._objects = Cache(self._folder / "objects", _MOST_BYTES)
        self._slots = threading.BoundedSemaphore(jobs or usable_cores())
        self._architecture = cuda_arch
        self._workshops: dict[bool, Workshop] = {}
        self._opening = threading.Lock()
        self._turns = [threading.Lock() for _ in range(64)]

    @property
    def isolation(self) -> tuple[str, ...]:
        return self._workshop(with_cuda=False).enclosure.layers

    def warm_up(self) -> float:
        """Does now what the first build would wait for. Gives the seconds that it took."""
        start = time.monotonic()
        workshop = self._workshop(with_cuda=False)
        workshop.enclosure.prepare()
        runtime = workshop.runtime()
        if isinstance(runtime, str):
            raise BuilderError(f"the light headers do not compile here: {runtime[:2000]}")
        return time.monotonic() - start

    def build(
        self,
        request: BuildRequest,
        timeout_s: float = 180.0,
        *,
        sanitize: bool = False,
    ) -> BuildOutcome:
        """Builds one extension; whatever is the candidate's fault is in the outcome.

        `timeout_s` bounds each compiler run. `sanitize`: C++ sources with AddressSanitizer and
        UndefinedBehaviorSanitizer, whose runtimes must be in the process that loads it. Raises
        BuilderError when a compiler is missing or the cache cannot be written.
        """
        start = time.monotonic()
        outcome = BuildOutcome(ok=False, library="")
        try:
            sources = arrange(request)
            with_cuda = request.with_cuda or any(unit.device for unit in sources.units)
            workshop = self._workshop(with_cuda=with_cuda)
            flags = _allowed_flags(request, workshop.tools)
            if sanitize:
                flags = flags.sanitized()
        except (BadRequestError, RefusedFlagError) as error:
            return replace(outcome, log=cut_short(f"error: {error}\n"))
        kind = "sanitized library" if sanitize else "library"
        key = workshop.key(kind, request.encode().hex())
        # The same request twice at once is compiled once.
        with self._turns[int(key[:4], 16) % len(self._turns)]:
            known = self._known(key)
            if known is None:
                known = self._make(key, workshop, request.name, sources, flags, timeout_s)
        return replace(known, seconds=time.monotonic() - start)

    def _workshop(self, *, with_cuda: bool) -> Workshop:
        with self._opening:
            if with_cuda not in self._workshops:
                tools = Toolchain.find(self._architecture, with_cuda=with_cuda)
                sweep(self._folder)
                light_folder = headers.install(self._folder)
                enclosure = Enclosure(
                    self._folder, (*tools.visible, light_folder), tools.environment
                )
                self._workshops[with_cuda] = Workshop(
                    self._folder, tools, enclosure, self._objects, self._slots
                )
            return self._workshops[with_cuda]

    def _known(self, key: str) -> BuildOutcome | None:
        entry = self._libraries.get(key)
        if entry is None:
            return None
        try:
            outcome = BuildOutcome(**json.loads((entry / "outcome.json").read_text()))
        except FileNotFoundError:  # another process made room meanwhile
            return None
        library = str(entry / outcome.library) if outcome.ok else ""
        return replace(outcome, library=library, cached=True)

    def _make(
        self,
        key: str,
        workshop: Workshop,
        name: str,
        sources: Sources,
        flags: Flags,
        timeout_s: float,
    ) -> BuildOutcome:
        # Only now: what is in the cache needs no walls.
        workshop.enclosure.prepare()
        attempt = workshop.attempt(name, sources, flags, light=True, timeout_s=timeout_s)
        light = attempt.content is not None or not attempt.headers_lacking
        if not light:
            attempt = workshop.attempt(name, sources, flags, light=False, timeout_s=timeout_s)
        outcome = BuildOutcome(
            ok=attempt.content is not None,
            library=f"{name}.so" if attempt.content is not None else "",
            headers="light" if light else "full",
            log=cut_short(attempt.log),
            timed_out=attempt.timed_out,
        )
        if attempt.timed_out:
            return outcome
        files = {"outcome.json": json.dumps(asdict(outcome)).encode()}
        if attempt.content is not None:
            files[outcome.library] = attempt.content
        entry = self._libraries.put(key, files)
        return replace(outcome, library=str(entry / outcome.library) if outcome.ok else "")


def _allowed_flags(request: BuildRequest, tools: Toolchain) -> Flags:
    return Flags(
        host_flags(request.cflags, tools.includable),
        device_flags(request.cuda_cflags, tools.includable),
        link_flags(request.ldflags, (tools.torch.libraries, Path("/usr/local"), Path("/usr/lib"))),
    )
