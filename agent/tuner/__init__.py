"""The offline rule-based kernel writer behind `offline/tuner`. It never imports torch."""

from agent.tuner.answer import answer

__all__ = ["answer"]
