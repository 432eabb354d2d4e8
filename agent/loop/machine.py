"""The state machine as a run uses it: compiled, and without LangGraph's checkpoints.

A checkpoint would say which node comes next. The journal of the turn in progress
(`agent/record/turn.py`) says that too, and holds the turn itself, so checkpoints would be a
second truth. They took 3.8 of 12.3 ms of a turn of `sample`, and 1.2 of 10.7 ms of `refine`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent.loop.deps import Deps
from agent.loop.state import TurnState, first_state
from agent.record.turn_log import TurnKey

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    Graph = CompiledStateGraph[TurnState, Deps, TurnState, TurnState]

STEPS_A_TURN = 4
"""Nodes that a turn goes through at most."""


class Machine:
    """Takes turns through the graph. It is built for the first one: a run that is finished needs
    none. Safe to use from several threads."""

    def __init__(self, first_wait_s: float, *, profiles: bool) -> None:
        """`first_wait_s`: before an evaluation is tried again. `profiles`: correct kernels are
        profiled."""
        self._first_wait_s = first_wait_s
        self._profiles = profiles
        self._lock = threading.Lock()
        self._built: Graph | None = None

    def walk(self, deps: Deps, key: TurnKey) -> None:
        """Take the turn `key`, then others of its problem while one is ready. Raises what its nodes
        raise."""
        # The budget ends a run. The limit only catches a graph that runs in circles.
        limit = STEPS_A_TURN * (deps.config.budget + 1)
        self._graph().invoke(first_state(key), {"recursion_limit": limit}, context=deps)

    def _graph(self) -> Graph:
        with self._lock:
            if self._built is None:
                from agent.loop.graph import build_graph

                self._built = build_graph(self._first_wait_s, profiles=self._profiles).compile()
            return self._built
