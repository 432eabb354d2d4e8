"""The HTTP side of a server of verdicts: one endpoint that judges, one that reports the state."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from problems.errors import UsageError
from tools.serve.batch import Batch, BatchRequest, Job, MalformedError, one_line, read_batch
from tools.serve.dispatch import Dispatch, StoppingError

HOST = "127.0.0.1"
_BODY_S = 60.0
"""How long a client may take to send its body, or to read a line."""
_MOST_BODIES = 8
"""Of the largest, in memory at a time."""
_TOLD = ("Allow", "Retry-After")
_SHUTDOWN_TIMEOUT_S = 5.0
"""How long a client may take to read its last lines, once everything is answered."""


@dataclass
class RewardServer:
    dispatch: Dispatch
    token: str
    job_for: Callable[[str, str, str, str | None], Job]
    """Of a client, a problem's name, a candidate, and the problem where its client sent it. Raises
    `UsageError` for an unknown problem."""
    about: Mapping[str, object]
    most_bytes: int
    """Of a body."""
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    """To read a large body stops all threads for a moment; others get their turns in between."""
    _arriving: int = 0
    """Bytes of bodies that are not read to their end."""

    async def run(
        self, port: int, stop: asyncio.Event, limit_s: float, announce: Callable[[str], None]
    ) -> bool:
        """Serve until `stop` is set; then finish what is under way, and end all streams. Returns
        whether that was done within `limit_s`. Port 0 takes any free one; `announce` gets the
        address. Raises `UsageError` for a port that can't be used."""
        app = web.Application(client_max_size=self.most_bytes, middlewares=[self._guarded()])
        app.router.add_post("/evaluations", self._evaluations, expect_handler=_not_yet)
        app.router.add_get("/health", self._health, expect_handler=_not_yet)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_log_without_text(),
            # Packed bodies are no JSON: so none becomes larger than what was sent.
            auto_decompress=False,
            # A client that hangs up ends the wait for its verdicts.
            handler_cancellation=True,
            shutdown_timeout=_SHUTDOWN_TIMEOUT_S,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, HOST, port)
            try:
                await site.start()
            except OSError as error:
                raise UsageError(f"--port {port} can't be used ({error}); choose another") from None
            announce(f"http://{HOST}:{runner.addresses[0][1]}")
            await stop.wait()
            await site.stop()
            return await self.dispatch.stop(limit_s)
        finally:
            await runner.cleanup()

    def _guarded(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not admits(self.token, request.headers.get("Authorization", "")):
                return _refusal(
                    401,
                    "send the header Authorization: Bearer TOKEN",
                    {"WWW-Authenticate": "Bearer"},
                )
            try:
                return await handler(request)
            except web.HTTPException as error:
                told = {key: error.headers[key] for key in _TOLD if key in error.headers}
                return _refusal(error.status, error.reason, told)
            except Exception:  # noqa: BLE001 - the boundary of a request, which records
                traceback.print_exc()
                return _refusal(500, "an error of the server, which has recorded it")

        return guard

    async def _health(self, request: web.Request) -> web.StreamResponse:
        dispatch = self.dispatch
        state = {
            "waiting": dispatch.waiting,
            "under_way": dispatch.under_way,
            "room": dispatch.room,
            "answered": dispatch.answered,
            "failed": dispatch.failed,
            "stopping": dispatch.stopping,
        }
        return web.json_response(state | dict(self.about))

    async def _evaluations(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = await self._read(request)
            jobs = await asyncio.to_thread(self._jobs, asked)
        except TimeoutError:
            return _refusal(408, f"the body did not come within {_BODY_S:g} s")
        except MalformedError as error:
            return _refusal(error.status, str(error))
        batch = Batch(asked.client)
        try:
            retry_after_s = self.dispatch.admit(batch, jobs)
        except StoppingError:
            return _refusal(503, "the server is stopping")
        if retry_after_s is not None:
            return _refusal(
                429,
                f"{self.dispatch.waiting} candidates wait, at most {self.dispatch.room} may",
                {"Retry-After": str(retry_after_s)},
            )
        try:
            return await _stream(request, batch, len(jobs))
        finally:
            self.dispatch.drop(batch)

    async def _read(self, request: web.Request) -> BatchRequest:
        if (request.content_length or 0) > self.most_bytes:
            raise web.HTTPRequestEntityTooLarge(self.most_bytes, request.content_length or 0)
        size = request.content_length or self.most_bytes
        if self._arriving + size > _MOST_BODIES * self.most_bytes:
            raise web.HTTPTooManyRequests(headers={"Retry-After": "5"})
        self._arriving += size
        try:
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            async with asyncio.timeout(_BODY_S):
                # A clone, or else the request would keep its body while its candidates wait.
                body = await request.clone().read()
            async with self._reading:
                return await asyncio.to_thread(read_batch, body, self.dispatch.room)
        finally:
            self._arriving -= size

    def _jobs(self, asked: BatchRequest) -> list[Job]:
        """Raises `MalformedError` for a problem that the suite does not have."""
        found: list[Job] = []
        client = asked.client or secrets.token_hex()
        for index, candidate in enumerate(asked.candidates):
            own = asked.problems.get(candidate.problem)
            try:
                found.append(self.job_for(client, candidate.problem, candidate.source, own))
            except UsageError as error:
                raise MalformedError(one_line(f"candidates.{index}: {error}")) from None
        return found


async def _not_yet(request: web.Request) -> None:
    """Who waits to be asked for a body is asked once its request may be taken."""


def admits(token: str, authorization: str) -> bool:
    """Whether the header says `Bearer` and the token; compares in constant time."""
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
    return same and scheme.lower() == "bearer"


def _log_without_text() -> logging.Logger:
    """For what is no HTTP. aiohttp would quote it, and with it a token behind which a stray
    character stands; anybody on this machine can send it, so it gets one line."""

    def brief(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[0] is not None:
            record.msg = f"{record.getMessage()}: {record.exc_info[0].__name__}"
            record.args, record.exc_info = (), None
        return True

    log = logging.Logger(f"{__name__}.http")
    log.addFilter(brief)
    return log


async def _stream(request: web.Request, batch: Batch, answers: int) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"}
    )
    with suppress(ConnectionError):  # the client hung up
        await response.prepare(request)
        for _ in range(answers):
            line = await batch.answers.get()
            try:
                async with asyncio.timeout(_BODY_S):
                    await response.write(line)
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
                break
        else:
            await response.write_eof()
    return response


def _refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = json.dumps({"error": text}) + "\n"
    return web.Response(
        status=status, text=body, content_type="application/json", headers=dict(headers or {})
    )
