"""Branch and bound over a box of poses: a proof, a counterexample, or what is left at the end.

Boxes are handled in batches. One half of a batch has the worst predicted values, which finds
counterexamples; the other half has the largest volumes, which leaves little undecided.

Source: Moore, Kearfott and Cloud 2009, Introduction to interval analysis, chapter 11.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.domain import MAX_LEVEL, Domain, halves, is_outside_cylinder
from tauloop.design.enclosure import (
    Boxes,
    Enclosure,
    Requirements,
    closed_only,
    enclose,
)
from tauloop.design.following import FollowedPath, follow, is_within, points, predicted
from tauloop.design.problem import PoseProblem
from tauloop.design.violations import Counterexample, violation
from tauloop.design.violations_within import machine_of, violation_by_deviations, without_errors

#: Halvings of the whole box without a look at the parts, where its loops are not enclosed at once: a
#: batch of a few boxes takes as long as a single one.
FIRST_HALVINGS = 5
#: Boxes of one batch.
BATCH = 512
#: Claims with a measure.
MEASURES = ("parallel singularity", "serial singularity", "constraint singularity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Where a search ends.

    Attributes:
        boxes: maximum number of boxes that are evaluated.
        duration: longest processor time, s.
    """

    boxes: int
    duration: float

    @property
    def half(self) -> Budget:
        """Half of it."""
        return Budget(boxes=-(-self.boxes // 2), duration=0.5 * self.duration)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.boxes <= 0 or self.duration <= 0.0

    def without(self, outcome: BoxSearch) -> Budget:
        """Return what a search left of it."""
        return Budget(
            boxes=self.boxes - outcome.n_evaluated, duration=self.duration - outcome.duration
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSearch:
    """Outcome of a search.

    Attributes:
        domain: the box.
        path: the path from the reference to the center of the box.
        counterexample: a violating pose; None if there is none.
        level, index: the proved boxes (N, k).
        unknowns: unknowns at their middles (N, n).
        n_evaluated: number of evaluated boxes.
        undecided: fraction of the volume that is not decided.
        unconnected: number of neighboring boxes whose solutions were not shown to be the same.
        measures: lower bounds of the measures over the whole box, by name.
        worst: the requirement that is hardest to prove in the undecided boxes.
        duration: processor time, s.
    """

    domain: Domain
    path: FollowedPath
    counterexample: Counterexample | None
    level: np.ndarray
    index: np.ndarray
    unknowns: np.ndarray
    n_evaluated: int
    undecided: float
    unconnected: int
    measures: dict[str, float]
    worst: str | None
    duration: float

    @property
    def is_proved(self) -> bool:
        """Whether every requirement holds at every pose of the box."""
        return (
            self.counterexample is None
            and self.path.is_complete
            and self.undecided == 0.0
            and self.unconnected == 0
        )


@dataclass(slots=True)
class _Tree:
    """Divisions of the domain; boxes are numbered in order of creation, the whole domain is 0."""

    axis: list[np.ndarray] = field(default_factory=list)
    parents: list[np.ndarray] = field(default_factory=list)
    faces: list[np.ndarray] = field(default_factory=list)
    first_children: list[np.ndarray] = field(default_factory=list)
    count: int = 1

    def divide(self, parents: np.ndarray, axis: np.ndarray, faces: np.ndarray) -> np.ndarray:
        """Number the halves of boxes: all lower ones, then all upper ones (2 N,)."""
        n = len(parents)
        self.axis.append(axis)
        self.parents.append(parents)
        self.faces.append(faces)
        self.first_children.append(self.count + np.arange(n))
        self.count += 2 * n
        return self.count - 2 * n + np.arange(2 * n)


@dataclass(slots=True)
class _Pending:
    """Boxes to evaluate; least: proved bounds of `MEASURES` from the box that was divided (N, 3)."""

    number: np.ndarray
    level: np.ndarray
    index: np.ndarray
    unknowns: np.ndarray
    priority: np.ndarray
    least: np.ndarray

    def take(self, size: int) -> _Pending:
        """Remove and return a batch: half by priority, half by volume."""
        n = len(self.number)
        chosen = np.zeros(n, dtype=bool)
        if n <= size:
            chosen[:] = True
        else:
            chosen[np.argpartition(self.priority, size // 2)[: size // 2]] = True
            depth = self.level.sum(axis=1) + 10_000 * chosen
            chosen[np.argpartition(depth, size // 2)[: size // 2]] = True
        batch = self.part(chosen)
        rest = self.part(~chosen)
        for name in self.__slots__:
            setattr(self, name, getattr(rest, name))
        return batch

    def part(self, chosen: np.ndarray) -> _Pending:
        """Return some of the boxes."""
        return _Pending(*(getattr(self, name)[chosen] for name in self.__slots__))

    def put(self, other: _Pending) -> None:
        """Add boxes."""
        for name in self.__slots__:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))


@dataclass(slots=True)
class _Proved:
    """Proved boxes."""

    number: list[np.ndarray] = field(default_factory=list)
    level: list[np.ndarray] = field(default_factory=list)
    index: list[np.ndarray] = field(default_factory=list)
    enclosures: list[tuple[Enclosure, np.ndarray]] = field(default_factory=list)


@dataclass(slots=True)
class _BoxSearchState:
    """State of a search.

    Attributes:
        tree: divisions of the domain.
        proved: proved boxes.
        pending: boxes to evaluate.
        measures: lower bounds of the measures in the proved boxes.
        n_evaluated, n_batches: number of evaluated boxes, and of their batches.
        volume: decided fraction of the volume.
        counterexample, worst: as in `BoxSearch`.
        is_stopped: whether the search cannot go on.
    """

    tree: _Tree
    proved: _Proved
    pending: _Pending
    measures: dict[str, float] = field(default_factory=dict)
    n_evaluated: int = 0
    n_batches: int = 0
    volume: float = 0.0
    counterexample: Counterexample | None = None
    worst: str | None = None
    is_stopped: bool = False


def search(
    problem: PoseProblem,
    wanted: Requirements,
    domain: Domain,
    budget: Budget,
    progress: Callable[[float], None] | None = None,
) -> BoxSearch:
    """Prove requirements at every pose of a box, or find a pose that violates one.

    Args:
        problem: functions of the machine.
        wanted: the requirements.
        domain: the box, or a cylinder.
        budget: where the search ends.
        progress: called with the decided fraction of the volume.

    Returns:
        The proved boxes, or a pose that violates a requirement.
    """
    started = time.process_time()
    path = follow(problem, problem.reference[0], problem.reference[1], domain.center)
    root = np.zeros((1, len(domain.varied)), dtype=int)
    none = np.zeros((1, len(MEASURES)))
    pending = _Pending(np.zeros(1, dtype=int), root, root, path.last[None], none[:, 0], none)
    state = _BoxSearchState(_Tree(), _Proved(), pending, is_stopped=not path.is_complete)
    if problem.tolerances.any() and not path.is_complete:
        state.counterexample = _nominal_violation(problem, wanted, domain, budget)
    while len(state.pending.number) and not state.is_stopped:
        if state.n_evaluated >= budget.boxes or time.process_time() - started > budget.duration:
            break
        _step(state, problem, wanted, domain, path)
        if progress is not None:
            progress(min(state.volume, 1.0))
    return _outcome(state, problem, domain, path, started)


def _step(
    state: _BoxSearchState,
    problem: PoseProblem,
    wanted: Requirements,
    domain: Domain,
    path: FollowedPath,
) -> None:
    """Evaluate a batch of boxes; then divide those that are not proved, or stop."""
    batch = state.pending.take(BATCH)
    enclosure = enclose(problem, wanted, domain.boxes(batch.level, batch.index, batch.unknowns))
    is_first = state.n_evaluated == 0
    state.n_evaluated += len(batch.number)
    state.n_batches += 1
    good = enclosure.proved
    state.volume += _volume(batch.level[good])
    _note(state.proved, batch, enclosure, good)
    _measure(state.measures, enclosure, good)
    if good.all():
        return
    if is_first and not enclosure.closed[0]:
        _put(state, domain, _first_boxes(state.tree, domain, batch, enclosure))
        return
    state.counterexample, state.worst = violation(problem, wanted, domain, path, enclosure, ~good)
    tries_machines = problem.tolerances.any() and _is_power_of_two(state.n_batches)
    if state.counterexample is None and tries_machines:
        state.counterexample = violation_by_deviations(problem, wanted, domain, enclosure, ~good)
    if state.counterexample is not None:
        state.is_stopped = True
    elif (batch.level[~good].sum(axis=1) >= MAX_LEVEL).any():
        state.pending.put(batch.part(~good))
        state.is_stopped = True
    else:
        _put(state, domain, _divided(state.tree, domain, batch, enclosure, ~good))


def _nominal_violation(
    problem: PoseProblem, wanted: Requirements, domain: Domain, budget: Budget
) -> Counterexample | None:
    """Return a pose at which the machine without deviations violates a requirement."""
    nominal = machine_of(problem, problem.nominal)
    violation_of_it = search(nominal, without_errors(wanted), domain, budget).counterexample
    if violation_of_it is None:
        return None
    return replace(violation_of_it, parameters=problem.nominal)


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


def _volume(level: np.ndarray) -> float:
    """Return the fraction of the whole volume in boxes (N, k)."""
    return float((0.5 ** level.sum(axis=1)).sum())


def _put(state: _BoxSearchState, domain: Domain, boxes: _Pending) -> None:
    """Add boxes to evaluate, except those outside of a cylinder."""
    outside = domain.is_outside(boxes.level, boxes.index)
    state.volume += _volume(boxes.level[outside])
    state.pending.put(boxes.part(~outside))


def _outcome(
    state: _BoxSearchState, problem: PoseProblem, domain: Domain, path: FollowedPath, started: float
) -> BoxSearch:
    """Return the outcome of a search."""
    pending, proved, measures = state.pending, state.proved, dict(state.measures)
    for column, name in enumerate(MEASURES):
        if name in measures and (len(pending.number) or not path.is_complete):
            left = float(pending.least[:, column].min(initial=np.inf))
            measures[name] = min(measures[name], left if path.is_complete else 0.0)
    none = pending.level[:0]
    unknowns = [part.boxes.unknowns[good] for part, good in proved.enclosures]
    is_whole = state.counterexample is None and path.is_complete and len(pending.number) == 0
    unconnected = 0
    if is_whole:
        unconnected = _unconnected(problem, domain, path, state.tree, proved)
    return BoxSearch(
        domain=domain,
        path=path,
        counterexample=state.counterexample,
        level=np.concatenate([none, *proved.level]),
        index=np.concatenate([none, *proved.index]),
        unknowns=np.concatenate([path.last[None][:0], *unknowns]),
        n_evaluated=state.n_evaluated,
        undecided=0.0 if is_whole else max(1.0 - state.volume, 2.0**-MAX_LEVEL),
        unconnected=unconnected,
        measures=measures,
        worst=state.worst,
        duration=time.process_time() - started,
    )


def _note(proved: _Proved, batch: _Pending, enclosure: Enclosure, good: np.ndarray) -> None:
    """Add the proved boxes of a batch."""
    if good.any():
        proved.number.append(batch.number[good])
        proved.level.append(batch.level[good])
        proved.index.append(batch.index[good])
        proved.enclosures.append((enclosure, good))


def _measure(measures: dict[str, float], enclosure: Enclosure, good: np.ndarray) -> None:
    """Lower the proved bounds of measures to those of proved boxes."""
    for claim in enclosure.claims:
        if claim.measure is not None:
            known = measures.setdefault(claim.name, np.inf)
            if good.any():
                measures[claim.name] = min(known, float(claim.measure[good].min()))


def _divided(
    tree: _Tree, domain: Domain, batch: _Pending, enclosure: Enclosure, chosen: np.ndarray
) -> _Pending:
    """Return the halves of boxes, with start values of first order."""
    which = np.flatnonzero(chosen)
    axis = np.argmax(enclosure.influence[which], axis=1)
    level, index, faces = halves(batch.level[which], batch.index[which], axis, domain.round)
    numbers = tree.divide(batch.number[which], axis, faces)
    both = np.concatenate([which, which])
    middles = domain.poses((2 * index + 1) * 0.5 ** (level + 1))
    guess = predicted(enclosure, both, middles)
    guess = np.where(np.isfinite(guess), guess, enclosure.boxes.unknowns[both])
    priority = np.zeros(len(which))
    for claim in enclosure.claims:
        least = claim.middle - np.abs(claim.slopes).sum(axis=1)
        reach = np.maximum(np.abs(claim.middle), 1e-12)
        with np.errstate(over="ignore"):
            share = np.nan_to_num(least / reach, nan=0.0)[which]
        priority = np.minimum(priority, np.where(enclosure.closed[which], share, 0.0))
    least = _proved_measures(enclosure, which)
    return _Pending(
        numbers,
        level,
        index,
        guess,
        np.concatenate([priority, priority]),
        np.concatenate([least, least]),
    )


def _proved_measures(enclosure: Enclosure, which: np.ndarray) -> np.ndarray:
    """Return the proved bounds of `MEASURES` in some boxes (N, 3)."""
    least = np.zeros((len(which), len(MEASURES)))
    for claim in enclosure.claims:
        if claim.measure is not None:
            values = np.where(enclosure.closed, np.nan_to_num(claim.measure, nan=0.0), 0.0)
            least[:, MEASURES.index(claim.name)] = values[which]
    return least


def _first_boxes(tree: _Tree, domain: Domain, batch: _Pending, enclosure: Enclosure) -> _Pending:
    """Return the parts of the whole box after several halvings of the most influential axes."""
    influence = enclosure.influence[0].copy()
    for _ in range(FIRST_HALVINGS):
        axis = np.full(len(batch.number), int(np.argmax(influence)))
        influence[axis[0]] *= 0.5
        level, index, faces = halves(batch.level, batch.index, axis, domain.round)
        numbers = tree.divide(batch.number, axis, faces)
        middles = domain.poses((2 * index + 1) * 0.5 ** (level + 1))
        guess = predicted(enclosure, np.zeros(len(numbers), dtype=int), middles)
        none = np.zeros((len(numbers), len(MEASURES)))
        batch = _Pending(numbers, level, index, guess, none[:, 0], none)
    return batch


def _unconnected(
    problem: PoseProblem, domain: Domain, path: FollowedPath, tree: _Tree, proved: _Proved
) -> int:
    """Return the number of divisions across which the solution may differ, and of the center.

    Across each division a point of the common face lies in one box on either side. If the solution
    there is that of both, all boxes of both halves have the same one, by induction. Faces outside of
    a cylinder do not count: what is inside lies on one side of them.
    """
    merged = merged_enclosure(
        [part for part, _ in proved.enclosures], [g for _, g in proved.enclosures]
    )
    leaves = _Leaves.of(tree, np.concatenate(proved.number))
    center = leaves.at(np.zeros(1, dtype=int), np.full((1, len(domain.varied)), 0.5))
    at_center = closed_only(problem, points(domain.center[None], path.last[None]))
    missing = int((~is_within(merged, center, at_center)).sum())
    if not tree.parents:
        return missing
    parents, faces = np.concatenate(tree.parents), np.concatenate(tree.faces)
    inside = ~is_outside_cylinder(faces, domain.round)
    parents, faces = parents[inside], faces[inside]
    lower = leaves.at(leaves.child[parents], faces)
    upper = leaves.at(leaves.child[parents] + leaves.step[parents], faces)
    b = domain.poses(faces)
    at_faces = closed_only(problem, points(b, predicted(merged, lower, b)))
    same = is_within(merged, lower, at_faces) & is_within(merged, upper, at_faces)
    return missing + int((~same).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaves:
    """The tree of divisions by number of the box.

    Attributes:
        place: index among the proved boxes; -1 for others.
        axis: axis of the division; -1 for none.
        cut: its fraction.
        child: number of the lower half; that of the upper half is larger by `step`.
        step: see `child`.
    """

    place: np.ndarray
    axis: np.ndarray
    cut: np.ndarray
    child: np.ndarray
    step: np.ndarray

    @classmethod
    def of(cls, tree: _Tree, numbers: np.ndarray) -> _Leaves:
        """Return the tree with proved boxes of some numbers (N,)."""
        place, axis = np.full(tree.count, -1), np.full(tree.count, -1)
        place[numbers] = np.arange(len(numbers))
        child, step = np.zeros(tree.count, dtype=int), np.zeros(tree.count, dtype=int)
        cut = np.zeros(tree.count)
        for parents, cuts, faces, first in zip(
            tree.parents, tree.axis, tree.faces, tree.first_children, strict=True
        ):
            axis[parents] = cuts
            cut[parents] = faces[np.arange(len(parents)), cuts]
            child[parents], step[parents] = first, len(parents)
        return cls(place=place, axis=axis, cut=cut, child=child, step=step)

    def at(self, start: np.ndarray, fractions: np.ndarray) -> np.ndarray:
        """Return the proved boxes (N,) below boxes that contain points (N, k)."""
        node = start.copy()
        while (inner := self.axis[node] >= 0).any():
            own = node[inner]
            above = fractions[inner, self.axis[own]] > self.cut[own]
            node[inner] = self.child[own] + np.where(above, self.step[own], 0)
        return self.place[node]


def merged_enclosure(parts: list[Enclosure], chosen: list[np.ndarray]) -> Enclosure:
    """Return the chosen boxes of several enclosures, without claims."""

    def joined(values: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([value[good] for value, good in zip(values, chosen, strict=True)])

    boxes = Boxes(
        middle=joined([part.boxes.middle for part in parts]),
        generators=joined([part.boxes.generators for part in parts]),
        unknowns=joined([part.boxes.unknowns for part in parts]),
        rounding=parts[0].boxes.rounding,
    )
    return Enclosure(
        boxes=boxes,
        sensitivity=joined([part.sensitivity for part in parts]),
        unique=joined([part.unique for part in parts]),
        remainder=joined([part.remainder for part in parts]),
        closed=joined([part.closed for part in parts]),
        influence=joined([part.influence for part in parts]),
    )
