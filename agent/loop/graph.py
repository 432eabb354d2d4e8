"""The state machine of a problem's turns, in one screen.

START -> propose -> execute -> profile -> decide -> propose, or END; where the feedback needs no
profile, or without a correct kernel, execute -> decide. Each edge carries the turn so far.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from agent.loop import nodes
from agent.loop.deps import Deps
from agent.loop.nodes import TurnState
from agent.record.turn_log import TurnKey

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.graph.state import CompiledStateGraph

    Graph = CompiledStateGraph[TurnState, Deps, TurnState, TurnState]

_ENVIRONMENT = {
    # An inherited switch must not upload prompts to a tracing service.
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
}


def build_graph(
    first_wait_s: float = 1.0, *, profiles: bool = True
) -> StateGraph[TurnState, Deps, TurnState, TurnState]:
    """The graph, not compiled yet. `first_wait_s`: before the judge is asked again. `profiles`:
    correct kernels are profiled."""
    os.environ.update(_ENVIRONMENT)  # read when LangGraph and LangSmith are first imported
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import RetryPolicy

    again = RetryPolicy(
        max_attempts=nodes.ATTEMPTS, initial_interval=first_wait_s, retry_on=nodes.worth_retrying
    )
    graph = StateGraph(TurnState, context_schema=Deps)
    graph.add_node("propose", nodes.propose, retry_policy=again)
    graph.add_node("execute", nodes.execute, retry_policy=again)
    graph.add_node("decide", nodes.decide)
    graph.add_edge(START, "propose")
    graph.add_edge("propose", "execute")
    if profiles:
        graph.add_node("profile", nodes.profile)
        graph.add_conditional_edges(
            "execute", nodes.after_execute, {"profile": "profile", "decide": "decide"}
        )
        graph.add_edge("profile", "decide")
    else:
        graph.add_edge("execute", "decide")
    graph.add_conditional_edges("decide", nodes.after_decide, {"propose": "propose", "end": END})
    return graph


def draw() -> str:
    return build_graph().compile().get_graph().draw_mermaid()


STEPS_A_TURN = 4
"""Nodes that a turn goes through at most."""


class Machine:
    """Takes turns through the graph. It is built for the first one: a run that is finished needs
    none. Safe to use from several threads.

    It does without LangGraph's checkpoints. The journal of the turn in progress says which node
    comes next, and holds the turn itself, so checkpoints would be a second truth. They took 3.8 of
    12.3 ms of a turn of `sample`, and 1.2 of 10.7 ms of `refine`.
    """

    def __init__(self, first_wait_s: float, *, profiles: bool) -> None:
        self._first_wait_s = first_wait_s
        self._profiles = profiles
        self._lock = threading.Lock()
        self._built: Graph | None = None

    def walk(self, deps: Deps, key: TurnKey) -> None:
        """Take the turn `key`, then others of its problem while one is ready. Raises what its nodes
        raise."""
        # The budget ends a run. The limit only catches an endless loop.
        limit = STEPS_A_TURN * (deps.config.budget + 1)
        first = TurnState(key=key, turn=None, ended=False)
        self._graph().invoke(first, {"recursion_limit": limit}, context=deps)

    def _graph(self) -> Graph:
        with self._lock:
            if self._built is None:
                self._built = build_graph(self._first_wait_s, profiles=self._profiles).compile()
            return self._built
