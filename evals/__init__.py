"""Evaluations: `python -m evals NAME [--json FILE]`; without a name, the list."""
