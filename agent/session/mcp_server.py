"""A session's tools over the Model Context Protocol, on stdio or on loopback."""

from __future__ import annotations

import asyncio
import hmac
import importlib.metadata
import resource
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agent.session.door import MOST_BYTES, Call
from agent.session.tools import MOST_CALLS, TOOLS, Answer
from evaluator.command.command_line import harmless
from evaluator.errors import InfrastructureError
from problems.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

INSTRUCTIONS = (
    "Kernel Refinery judges kernels that you write for PyTorch modules. Read a problem, evaluate a"
    " kernel, learn from the answer, evaluate a better one. Budgets are fixed. Call finish at the"
    " end: the best kernel counts."
)
_BEAT_S = 5.0
"""A client hears so often that its call is under way."""


def mcp_server(call: Call) -> Server[Any]:
    limiter = anyio.CapacityLimiter(len(TOOLS) * MOST_CALLS)

    async def list_tools(
        context: ServerRequestContext[Any], asked: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        found = [(name, tool.model_json_schema()) for name, tool in TOOLS.items()]
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=schema.pop("description"), input_schema=schema)
                for name, schema in found
            ]
        )

    async def call_tool(
        context: ServerRequestContext[Any], asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        said: asyncio.Queue[str] = asyncio.Queue()
        loop, began = asyncio.get_running_loop(), time.monotonic()

        async def report() -> None:
            text = "begun"
            while True:
                seconds = time.monotonic() - began
                await context.session.report_progress(seconds, message=f"{seconds:.0f} s: {text}")
                with anyio.move_on_after(_BEAT_S):
                    text = await said.get()

        def tell(text: str) -> None:
            with suppress(RuntimeError):  # the client has gone; the work goes on
                loop.call_soon_threadsafe(said.put_nowait, text)

        def answered() -> Answer:
            try:
                return call(asked.name, asked.arguments or {}, tell, agent)
            except (UsageError, InfrastructureError) as error:
                return Answer(str(error), "failed")  # the session that we pass calls on to ended

        client = context.session.client_params
        agent = f"{client.client_info.name} {client.client_info.version}" if client else ""
        async with anyio.create_task_group() as group:
            group.start_soon(report)
            # What nobody waits for any more is finished all the same, and kept.
            answer = await anyio.to_thread.run_sync(
                answered, abandon_on_cancel=True, limiter=limiter
            )
            group.cancel_scope.cancel()
        content = types.TextContent(type="text", text=harmless(answer.text))
        return types.CallToolResult(content=[content], is_error=answer.kind == "failed")

    return Server(
        "kernel-refinery",
        version=importlib.metadata.version("kernel-refinery"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(call: Call) -> None:
    """Until the client closes its end."""

    async def serve() -> None:
        server = mcp_server(call)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def serve_http(call: Call, port: int, token: str) -> None:
    """On loopback, for those who show the token, until a signal to stop. Prints both."""
    import uvicorn

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each connection takes one, and any program of this machine can connect.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2**16)), hard))
    app = mcp_server(call).streamable_http_app(max_request_body_size=MOST_BYTES)
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(f"address: http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        print(f"token: {token}", flush=True)
        config = uvicorn.Config(_guarded(app, token), log_level="warning", ws="none", backlog=64)
        anyio.run(uvicorn.Server(config).serve, [listening])


def _guarded(app: ASGIApp, token: str) -> ASGIApp:
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        shown = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(shown, wanted):
            await app(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"the token is wrong\n"})

    return guarded
