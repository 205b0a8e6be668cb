"""Things that need each other, in an order that serves all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping


def ordered(graph: Mapping[str, Iterable[str]], report: Callable[[list[str]], None]) -> list[str]:
    """Names in an order in which each follows those it needs; the same for the same graph.

    Depth first, without recursion, in time linear in the graph. (`graphlib` finds one circle at a time.)

    Args:
        graph: what each name needs; what is no name of the graph is no matter.
        report: called with the names of a circle, the first repeated at the end; no name is told twice.
    """
    order: list[str] = []
    done: set[str] = set()
    circular: set[str] = set()
    for root in graph:
        path: dict[str, Iterator[str]] = {} if root in done else {root: iter(graph[root])}
        while path:
            name = next(reversed(path))
            need = next(path[name], None)
            if need is None:
                del path[name]
                done.add(name)
                order.append(name)
            elif need in path and name not in circular:
                circle = [need]
                for member in reversed(path):
                    circle.append(member)
                    if member == need:
                        break
                circular.update(circle)
                report(circle[::-1])
            elif need in graph and need not in done and need not in path:
                path[need] = iter(graph[need])
    return order


def chain(names: list[str]) -> str:
    """Names with arrows between them; the middle of a long row is left out."""
    if len(names) <= 12:
        return " -> ".join(names)
    return f"{' -> '.join(names[:6])} -> ... {len(names) - 12} more ... -> {' -> '.join(names[-6:])}"
