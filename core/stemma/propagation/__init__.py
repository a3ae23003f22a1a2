"""How a wrong answer spreads over what was built on it.

Pure, no I/O, no store, no clock, but for what fetches the facts from a store: `audits`, `graph`.
"""
