"""How many problems stay set up in a judge. No torch here: who chooses a judge asks, too."""

MOST_PROBLEMS = 16
"""So that several can be refined in turn: twice as many as the evaluations at a time that keep one
GPU and its builders busy. The one that was used longest ago goes, sooner where memory is short."""

MOST_WORKERS = 18
"""Of baselines, of all these problems together, on a GPU: beyond that, further workers of eager
end. On an H200 a verdict took longer the more there were, twice as long with 72 as with 18. With
about 90 the device had no context left."""
