"""The error tree.

```text
StemmaError
├── UsageError (also ValueError)       an argument is wrong; always raised, never swallowed
│   ├── TenantRequired                 no tenant named anywhere
│   └── UnkeyableValue                 a value has no stable key (a lambda, an open handle)
├── StoreError                         the store could not do its work
│   ├── StoreUnavailable               it cannot be opened or reached, or is locked too long
│   ├── DamagedDatabase                the file is damaged; says what became of it
│   ├── ForeignDatabase                the file is not a database of ours; left untouched
│   └── SchemaTooNew                   written by a newer Stemma; left untouched
├── HopLimit                           hops are nested too deep: an agent that calls itself
├── CodecError                         a value cannot be stored, or stored bytes cannot be read
├── EmbedderError                      the embedder is missing, or its vectors are unfit
├── RerankerError                      the reranker's scores cannot be told apart, or are no numbers
├── JudgeError                         a judge gives no probability, or is asked too much at once
├── MissingDependency (also ImportError)   an optional package is not installed
└── CacheFault                         raised instead of a miss, where `fail="closed"` was asked for
```

A fault of the cache is by default a miss and an event. A wrong argument is always an error.
"""

from __future__ import annotations

__all__ = [
    "CacheFault",
    "CodecError",
    "DamagedDatabase",
    "EmbedderError",
    "ForeignDatabase",
    "HopLimit",
    "JudgeError",
    "MissingDependency",
    "RerankerError",
    "SchemaTooNew",
    "StemmaError",
    "StoreError",
    "StoreUnavailable",
    "TenantRequired",
    "UnkeyableValue",
    "UsageError",
]


class StemmaError(Exception):
    """The root of every error that Stemma raises on purpose."""


class UsageError(StemmaError, ValueError):
    """An argument is wrong. Says which one, what it was, and what is allowed."""


class TenantRequired(UsageError):
    """A call reached the cache and nothing named its tenant."""


class UnkeyableValue(UsageError):
    """A value that would be part of a key has no stable form."""


class StoreError(StemmaError):
    """The store could not do its work."""


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached, or stayed locked for too long."""


class DamagedDatabase(StoreError):
    """The database is damaged beyond single records. Says whether it was set aside, and where."""


class ForeignDatabase(StoreError):
    """The file exists and is not a database of ours. It was not touched."""


class SchemaTooNew(StoreError):
    """The database was written by a newer Stemma. It was not touched."""


class HopLimit(StemmaError):
    """Hops are nested deeper than their trace allows."""


class CodecError(StemmaError):
    """A value cannot be stored, or stored bytes cannot be read back."""


class EmbedderError(StemmaError):
    """The embedder is missing, or the vectors it gives are of no use."""


class RerankerError(StemmaError):
    """What the reranker gives is not one number a text."""


class JudgeError(StemmaError):
    """What a judge gives is no probability, or too much is before it already."""


class MissingDependency(StemmaError, ImportError):
    """An optional package is not installed. Names the extra that brings it."""


class CacheFault(StemmaError):
    """The cache failed and the caller had asked not to go on without it."""
