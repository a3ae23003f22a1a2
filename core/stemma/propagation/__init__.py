"""How a wrong answer spreads over what was built on it.

What reckons is pure: no I/O, no store, no clock. `audits`, `descent`, `timeline`, `outbreak` and
`graph` fetch the facts from a store.
"""
