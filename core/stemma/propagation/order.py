"""In which order errors pass: parents first, and together what goes round in circles."""

from __future__ import annotations

from collections.abc import Iterable

from stemma.propagation.edges import Outward

__all__ = ["circles"]


def circles(outward: Outward, starts: Iterable[int]) -> list[list[int]]:
    """What can be reached from some entries, in parts: parents' parts before their children's.

    A part is one entry, or all entries that can reach each other (a strongly connected component,
    after Tarjan). Without recursion, so that no depth is too deep.

    Args:
        outward: The edges.
        starts: Where to begin, as places.
    """
    firsts, children = outward.firsts, outward.children
    entries = len(firsts) - 1
    settled = entries + 1
    number, low, cursor = [0] * entries, [0] * entries, firsts[:-1]
    found: list[list[int]] = []
    count, open_ = 0, []
    for start in starts:
        walk = [] if number[start] else [start]
        while walk:
            node = walk[-1]
            if not number[node]:
                count += 1
                number[node] = low[node] = count
                open_.append(node)
            if cursor[node] < firsts[node + 1]:
                child = children[cursor[node]]
                cursor[node] += 1
                if number[child]:
                    low[node] = min(low[node], number[child])
                else:
                    walk.append(child)
                continue
            walk.pop()
            if walk:
                low[walk[-1]] = min(low[walk[-1]], low[node])
            if low[node] == number[node]:
                at = len(open_) - 1
                while open_[at] != node:
                    at -= 1
                found.append(open_[at:])
                del open_[at:]
                for member in found[-1]:
                    number[member] = settled
    found.reverse()
    return found
