"""The state machine as a run uses it: compiled, with its checkpoints in the run directory."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from agent.loop.deps import Deps
from agent.loop.state import TurnState, first_state
from agent.record.turn_log import TurnKey

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph.state import CompiledStateGraph

    Graph = CompiledStateGraph[TurnState, Deps, TurnState, TurnState]

FILE = "checkpoints.sqlite"
STEPS_A_TURN = 4
"""Nodes that a turn goes through at most."""


class Machine:
    """Takes samples through the graph. It is built for the first one: a run that is finished needs
    none. Safe to use from several threads."""

    def __init__(self, folder: Path, first_wait_s: float) -> None:
        """`folder`: the run directory. `first_wait_s`: before an evaluation is tried again."""
        self._path = folder / FILE
        self._first_wait_s = first_wait_s
        self._open = ExitStack()
        self._lock = threading.Lock()
        self._built: tuple[Graph, SqliteSaver] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def walk(self, deps: Deps, key: TurnKey, turns: int) -> None:
        """Take the sample of `key` from that turn on to where its problem stops; `turns` are left
        at most. Raises what its nodes raise, and `sqlite3.Error`."""
        graph, bookmarks = self._build()
        thread = f"{key.problem}/{key.sample}"
        settings: RunnableConfig = {
            "configurable": {"thread_id": thread},
            # The budget ends a run. This only catches a graph that runs in circles.
            "recursion_limit": STEPS_A_TURN * (turns + 1),
        }
        start = first_state(*key)
        # A bookmark counts only where it agrees with the record, which is the truth.
        if deps.store.draft(key) is not None:
            bookmark = graph.get_state(settings)
            if bookmark.next and bookmark.values.get("turn") == key.turn:
                start = cast(TurnState, None)
        graph.invoke(start, settings, context=deps, durability="sync")
        # The sample has ended and its turns are recorded: the bookmarks would only pile up.
        bookmarks.delete_thread(thread)

    def _build(self) -> tuple[Graph, SqliteSaver]:
        with self._lock:
            if self._built is None:
                from agent.loop.graph import build_graph

                graph = build_graph(self._first_wait_s)  # sets what LangGraph reads when imported
                from langgraph.checkpoint.sqlite import SqliteSaver

                bookmarks = SqliteSaver(self._open.enter_context(closing(_connect(self._path))))
                self._built = graph.compile(checkpointer=bookmarks), bookmarks
            return self._built


def _connect(path: Path) -> sqlite3.Connection:
    """Open the checkpoints, anew where the file is no database: they are bookmarks, no more."""
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.DatabaseError:
        connection.close()
        for leftover in path.parent.glob(f"{path.name}*"):
            leftover.unlink()
        connection = sqlite3.connect(path, check_same_thread=False)
    # A power cut may cost the newest bookmarks; waiting for the disk at each one isn't worth it.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection
