"""How many problems stay set up in a judge. No torch here: who chooses a judge asks, too."""

MOST_PROBLEMS = 4
"""So that several can be refined in turn. The one that was used longest ago goes."""
