"""The state machine of a problem's turns, in one screen.

START -> propose -> execute -> profile -> decide -> propose, or END; where the feedback needs no
profile, or without a correct kernel, execute -> decide. Each edge carries the turn so far.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from agent.loop.deps import Deps
    from agent.loop.state import TurnState

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

    from agent.loop import nodes
    from agent.loop.deps import Deps
    from agent.loop.state import TurnState

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
    """The graph as Mermaid text."""
    return build_graph().compile().get_graph().draw_mermaid()
