"""Mutants: every guard of the hub taken away in turn, to see that a check misses it."""
