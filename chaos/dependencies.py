"""Judges the order of transactions: none may have seen what came after it (Adya's G1c).

A transaction that read a value came after the one that wrote it, since the value became visible with its commit. The
transactions of one writer follow one another. A circle of these is impossible. The order of records in a partition
says nothing here: as in Kafka, transactions that are open at the same time write to it by turns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from chaos.history import Attempt, Promise
from chaos.violations import Kind, Violation


def check_cycles(attempts: Sequence[Attempt]) -> Iterator[Violation]:
    """A violation for each set of transactions that all must have come after one another."""
    transactions = [one for one in attempts if one.promise is Promise.TRANSACTIONAL]
    followers = _followers(transactions)
    for group in _circles(len(transactions), followers):
        names = "; ".join(_named(transactions[number]) for number in sorted(group)[:4])
        yield Violation(Kind.CYCLE, f"{len(group)} transactions have each seen what the other did later: {names}.")


def _named(attempt: Attempt) -> str:
    wrote = ", ".join(one.value for one in attempt.appends[:3])
    read = ", ".join(one.value for one in attempt.reads[:3])
    return f"{attempt.writer} at {attempt.at:.1f} s wrote {wrote or 'nothing'} and read {read or 'nothing'}"


def _followers(transactions: Sequence[Attempt]) -> Mapping[int, set[int]]:
    """For each transaction those that came after it."""
    wrote = {one.value: number for number, attempt in enumerate(transactions) for one in attempt.appends}
    followers: dict[int, set[int]] = defaultdict(set)
    last: dict[str, int] = {}
    for number, attempt in enumerate(transactions):
        for read in attempt.reads:
            if read.value in wrote:
                followers[wrote[read.value]].add(number)
        if attempt.writer in last:
            followers[last[attempt.writer]].add(number)
        last[attempt.writer] = number
    return followers


def _circles(count: int, followers: Mapping[int, set[int]]) -> Iterator[list[int]]:
    """Strongly connected components of several nodes, or of one that follows itself (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in range(count):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(followers.get(root, ())))]
        while work:
            node, left = work[-1]
            follower = next(left, None)
            if follower is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found = _unstack(stack, on_stack, node)
                    if len(found) > 1 or node in followers.get(node, ()):
                        yield found
            elif follower not in index:
                index[follower] = low[follower] = len(index)
                stack.append(follower)
                on_stack.add(follower)
                work.append((follower, iter(followers.get(follower, ()))))
            elif follower in on_stack:
                low[node] = min(low[node], index[follower])


def _unstack(stack: list[int], on_stack: set[int], node: int) -> list[int]:
    found = [stack.pop()]
    while found[-1] != node:
        found.append(stack.pop())
    on_stack.difference_update(found)
    return found
