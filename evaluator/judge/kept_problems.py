"""How many problems stay set up in a judge. No torch here: who chooses a judge asks, too."""

MOST_PROBLEMS = 16
"""So that several can be refined in turn: twice as many as the evaluations at a time that keep one
GPU and its builders busy. The one that was used longest ago goes, sooner where memory is short."""
