"""For tests, ours and yours: conformance suites to subclass, a clock set by hand, builders."""

from stemma.testing.clock import ManualClock

__all__ = ["ManualClock"]
