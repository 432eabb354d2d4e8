"""How many problems stay set up in a judge. No torch here: who chooses a judge asks, too."""

MOST_PROBLEMS = 16
"""So that several can be refined in turn: twice as many as the evaluations at a time that keep one
GPU and its builders busy. The one that was used longest ago goes, sooner where memory is short."""

MOST_WORKERS = 16
"""Of baselines, of all these problems together, where it is enough to end those that time a further
worker of a candidate. On an H200 a verdict took longer the more contexts there were: with
twelve problems and 72 workers twice as long as with three and 18, and with fifteen
problems the device had no context left."""
