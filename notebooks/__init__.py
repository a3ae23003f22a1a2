"""Experiments to read and to run: `python -m notebooks` executes them anew."""
