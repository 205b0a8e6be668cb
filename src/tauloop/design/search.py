"""Branch and bound over a box of poses: a proof, a counterexample, or undecided boxes.

Boxes are evaluated in batches. Half of a batch are the boxes with the worst predicted margins, which
finds counterexamples. The other half are the largest boxes, which leaves little volume undecided.

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

#: If the loops are not enclosed over the whole box, it is halved this number of times before parts are
#: evaluated: a batch of a few boxes takes as long as a single box.
FIRST_HALVINGS = 5
#: Maximum number of boxes of a batch.
BATCH_SIZE = 512
#: Names of the claims with a measure (see `Claim`).
MEASURES = ("parallel singularity", "serial singularity", "constraint singularity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits at which a search ends.

    Attributes:
        boxes: maximum number of boxes that are evaluated.
        duration: maximum processor time, s.
    """

    boxes: int
    duration: float

    @property
    def half(self) -> Budget:
        """Half of the budget."""
        return Budget(boxes=-(-self.boxes // 2), duration=0.5 * self.duration)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.boxes <= 0 or self.duration <= 0.0

    def without(self, outcome: BoxSearch) -> Budget:
        """Return the budget that remains after a search."""
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
        unknowns: unknowns at the centers of the proved boxes (N, n).
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
    """Boxes to evaluate.

    Attributes:
        number: numbers of the boxes in the tree (N,).
        level, index: dyadic fractions of the boxes (N, k).
        unknowns: start values of the unknowns at the centers (N, n).
        priority: predicted margins of the parent boxes; smaller values come first (N,).
        least: proved lower bounds of `MEASURES` in the parent boxes (N, 3).
    """

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
        batch = self.selected(chosen)
        remaining = self.selected(~chosen)
        for name in self.__slots__:
            setattr(self, name, getattr(remaining, name))
        return batch

    def selected(self, chosen: np.ndarray) -> _Pending:
        """Return the boxes of a mask (N,)."""
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
        is_stopped: whether the search has ended before all boxes are decided.
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
    requirements: Requirements,
    domain: Domain,
    budget: Budget,
    progress: Callable[[float], None] | None = None,
) -> BoxSearch:
    """Prove requirements at every pose of a box, or find a pose that violates one.

    Args:
        problem: functions of the machine.
        requirements: claims to verify, with their limits.
        domain: the box, or a cylinder.
        budget: limits at which the search ends.
        progress: called with the decided fraction of the volume.

    Returns:
        The proved boxes, or a pose that violates a requirement.
    """
    started = time.process_time()
    path = follow(problem, problem.reference[0], problem.reference[1], domain.center)
    root = np.zeros((1, len(domain.varied)), dtype=int)
    pending = _Pending(
        number=np.zeros(1, dtype=int),
        level=root,
        index=root,
        unknowns=path.last[None],
        priority=np.zeros(1),
        least=np.zeros((1, len(MEASURES))),
    )
    state = _BoxSearchState(_Tree(), _Proved(), pending, is_stopped=not path.is_complete)
    if problem.tolerances.any() and not path.is_complete:
        state.counterexample = _nominal_violation(problem, requirements, domain, budget)
    while len(state.pending.number) and not state.is_stopped:
        if state.n_evaluated >= budget.boxes or time.process_time() - started > budget.duration:
            break
        _step(state, problem, requirements, domain, path)
        if progress is not None:
            progress(min(state.volume, 1.0))
    return _outcome(state, problem, domain, path, started)


def _step(
    state: _BoxSearchState,
    problem: PoseProblem,
    requirements: Requirements,
    domain: Domain,
    path: FollowedPath,
) -> None:
    """Evaluate a batch of boxes; then divide those that are not proved, or stop."""
    batch = state.pending.take(BATCH_SIZE)
    enclosure = enclose(
        problem, requirements, domain.boxes(batch.level, batch.index, batch.unknowns)
    )
    is_first = state.n_evaluated == 0
    state.n_evaluated += len(batch.number)
    state.n_batches += 1
    proved = enclosure.proved
    state.volume += _volume(batch.level[proved])
    _add_proved(state.proved, batch, enclosure, proved)
    _update_measures(state.measures, enclosure, proved)
    if proved.all():
        return
    if is_first and not enclosure.has_unique_solution[0]:
        _put(state, domain, _first_boxes(state.tree, domain, batch, enclosure))
        return
    state.counterexample, state.worst = violation(
        problem, requirements, domain, path, enclosure, ~proved
    )
    tries_machines = problem.tolerances.any() and _is_power_of_two(state.n_batches)
    if state.counterexample is None and tries_machines:
        state.counterexample = violation_by_deviations(
            problem, requirements, domain, enclosure, ~proved
        )
    if state.counterexample is not None:
        state.is_stopped = True
    elif (batch.level[~proved].sum(axis=1) >= MAX_LEVEL).any():
        state.pending.put(batch.selected(~proved))
        state.is_stopped = True
    else:
        _put(state, domain, _divided(state.tree, domain, batch, enclosure, ~proved))


def _nominal_violation(
    problem: PoseProblem, requirements: Requirements, domain: Domain, budget: Budget
) -> Counterexample | None:
    """Return a pose at which the machine without deviations violates a requirement."""
    nominal = machine_of(problem, problem.nominal)
    counterexample = search(nominal, without_errors(requirements), domain, budget).counterexample
    if counterexample is None:
        return None
    return replace(counterexample, parameters=problem.nominal)


def _is_power_of_two(number: int) -> bool:
    """Return whether a positive integer is a power of two."""
    return number & (number - 1) == 0


def _volume(level: np.ndarray) -> float:
    """Return the fraction of the whole volume in boxes (N, k)."""
    return float((0.5 ** level.sum(axis=1)).sum())


def _put(state: _BoxSearchState, domain: Domain, boxes: _Pending) -> None:
    """Add boxes to evaluate, except those outside of a cylinder."""
    outside = domain.is_outside(boxes.level, boxes.index)
    state.volume += _volume(boxes.level[outside])
    state.pending.put(boxes.selected(~outside))


def _outcome(
    state: _BoxSearchState, problem: PoseProblem, domain: Domain, path: FollowedPath, started: float
) -> BoxSearch:
    """Return the outcome of a search."""
    pending = state.pending
    proved = state.proved
    measures = dict(state.measures)
    for column, name in enumerate(MEASURES):
        if name in measures and (len(pending.number) or not path.is_complete):
            pending_least = float(pending.least[:, column].min(initial=np.inf))
            measures[name] = min(measures[name], pending_least if path.is_complete else 0.0)
    no_boxes = pending.level[:0]
    unknowns = [enclosure.boxes.unknowns[mask] for enclosure, mask in proved.enclosures]
    is_decided = state.counterexample is None and path.is_complete and len(pending.number) == 0
    unconnected = 0
    if is_decided:
        unconnected = _unconnected(problem, domain, path, state.tree, proved)
    return BoxSearch(
        domain=domain,
        path=path,
        counterexample=state.counterexample,
        level=np.concatenate([no_boxes, *proved.level]),
        index=np.concatenate([no_boxes, *proved.index]),
        unknowns=np.concatenate([path.last[None][:0], *unknowns]),
        n_evaluated=state.n_evaluated,
        undecided=0.0 if is_decided else max(1.0 - state.volume, 2.0**-MAX_LEVEL),
        unconnected=unconnected,
        measures=measures,
        worst=state.worst,
        duration=time.process_time() - started,
    )


def _add_proved(proved: _Proved, batch: _Pending, enclosure: Enclosure, mask: np.ndarray) -> None:
    """Add the proved boxes of a batch."""
    if mask.any():
        proved.number.append(batch.number[mask])
        proved.level.append(batch.level[mask])
        proved.index.append(batch.index[mask])
        proved.enclosures.append((enclosure, mask))


def _update_measures(measures: dict[str, float], enclosure: Enclosure, mask: np.ndarray) -> None:
    """Reduce the proved bounds of measures to the smallest bounds in the proved boxes."""
    for claim in enclosure.claims:
        if claim.measure is not None:
            bound = measures.setdefault(claim.name, np.inf)
            if mask.any():
                measures[claim.name] = min(bound, float(claim.measure[mask].min()))


def _divided(
    tree: _Tree, domain: Domain, batch: _Pending, enclosure: Enclosure, chosen: np.ndarray
) -> _Pending:
    """Return the halves of boxes, with start values by linear prediction."""
    indices = np.flatnonzero(chosen)
    axis = np.argmax(enclosure.influence[indices], axis=1)
    level, index, faces = halves(batch.level[indices], batch.index[indices], axis, domain.round)
    numbers = tree.divide(batch.number[indices], axis, faces)
    parent_of_half = np.concatenate([indices, indices])
    centers = domain.poses((2 * index + 1) * 0.5 ** (level + 1))
    guess = predicted(enclosure, parent_of_half, centers)
    guess = np.where(np.isfinite(guess), guess, enclosure.boxes.unknowns[parent_of_half])
    priority = np.zeros(len(indices))
    for claim in enclosure.claims:
        predicted_margin = claim.margin_at_center - np.abs(claim.slopes).sum(axis=1)
        scale = np.maximum(np.abs(claim.margin_at_center), 1e-12)
        with np.errstate(over="ignore"):
            relative = np.nan_to_num(predicted_margin / scale, nan=0.0)[indices]
        priority = np.minimum(
            priority, np.where(enclosure.has_unique_solution[indices], relative, 0.0)
        )
    bounds_of_measures = _proved_measures(enclosure, indices)
    return _Pending(
        numbers,
        level,
        index,
        guess,
        np.concatenate([priority, priority]),
        np.concatenate([bounds_of_measures, bounds_of_measures]),
    )


def _proved_measures(enclosure: Enclosure, indices: np.ndarray) -> np.ndarray:
    """Return the proved bounds of `MEASURES` in some boxes (N, 3)."""
    bounds = np.zeros((len(indices), len(MEASURES)))
    for claim in enclosure.claims:
        if claim.measure is not None:
            values = np.where(
                enclosure.has_unique_solution, np.nan_to_num(claim.measure, nan=0.0), 0.0
            )
            bounds[:, MEASURES.index(claim.name)] = values[indices]
    return bounds


def _first_boxes(tree: _Tree, domain: Domain, batch: _Pending, enclosure: Enclosure) -> _Pending:
    """Return the boxes after several halvings of the whole box along the most influential axes."""
    influence = enclosure.influence[0].copy()
    for _ in range(FIRST_HALVINGS):
        axis = np.full(len(batch.number), int(np.argmax(influence)))
        influence[axis[0]] *= 0.5
        level, index, faces = halves(batch.level, batch.index, axis, domain.round)
        numbers = tree.divide(batch.number, axis, faces)
        centers = domain.poses((2 * index + 1) * 0.5 ** (level + 1))
        guess = predicted(enclosure, np.zeros(len(numbers), dtype=int), centers)
        batch = _Pending(
            number=numbers,
            level=level,
            index=index,
            unknowns=guess,
            priority=np.zeros(len(numbers)),
            least=np.zeros((len(numbers), len(MEASURES))),
        )
    return batch


def _unconnected(
    problem: PoseProblem, domain: Domain, path: FollowedPath, tree: _Tree, proved: _Proved
) -> int:
    """Return the number of divisions across which the solutions may differ.

    A point of the common face of two halves lies in a proved box on each side. If both boxes contain
    the same solution at this point, all boxes of both halves have the same solution, by induction. The
    center of the domain counts as a further division, between the path from the reference and its
    box. Faces outside a cylinder are ignored, because the domain is on one side of them.
    """
    merged = merged_enclosure(
        [enclosure for enclosure, _ in proved.enclosures], [mask for _, mask in proved.enclosures]
    )
    leaves = _Leaves.of(tree, np.concatenate(proved.number))
    center = leaves.at(np.zeros(1, dtype=int), np.full((1, len(domain.varied)), 0.5))
    at_center = closed_only(problem, points(domain.center[None], path.last[None]))
    n_unconnected = int((~is_within(merged, center, at_center)).sum())
    if not tree.parents:
        return n_unconnected
    parents = np.concatenate(tree.parents)
    faces = np.concatenate(tree.faces)
    is_inside = ~is_outside_cylinder(faces, domain.round)
    parents = parents[is_inside]
    faces = faces[is_inside]
    lower = leaves.at(leaves.child[parents], faces)
    upper = leaves.at(leaves.child[parents] + leaves.step[parents], faces)
    b = domain.poses(faces)
    at_faces = closed_only(problem, points(b, predicted(merged, lower, b)))
    is_same_solution = is_within(merged, lower, at_faces) & is_within(merged, upper, at_faces)
    return n_unconnected + int((~is_same_solution).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaves:
    """The tree of divisions by number of the box.

    Attributes:
        proved_index: index among the proved boxes; -1 for others.
        axis: axis of the division; -1 if the box is not divided.
        cut: fraction of the axis at which the box is divided.
        child: number of the lower half; the number of the upper half is larger by `step`.
        step: see `child`.
    """

    proved_index: np.ndarray
    axis: np.ndarray
    cut: np.ndarray
    child: np.ndarray
    step: np.ndarray

    @classmethod
    def of(cls, tree: _Tree, numbers: np.ndarray) -> _Leaves:
        """Return the tree whose proved boxes have the numbers (N,)."""
        proved_index = np.full(tree.count, -1)
        proved_index[numbers] = np.arange(len(numbers))
        axis = np.full(tree.count, -1)
        child = np.zeros(tree.count, dtype=int)
        step = np.zeros(tree.count, dtype=int)
        cut = np.zeros(tree.count)
        for parents, cuts, faces, first in zip(
            tree.parents, tree.axis, tree.faces, tree.first_children, strict=True
        ):
            axis[parents] = cuts
            cut[parents] = faces[np.arange(len(parents)), cuts]
            child[parents] = first
            step[parents] = len(parents)
        return cls(proved_index=proved_index, axis=axis, cut=cut, child=child, step=step)

    def at(self, start: np.ndarray, fractions: np.ndarray) -> np.ndarray:
        """Return the proved boxes (N,) that contain points (N, k), searched below boxes `start`."""
        node = start.copy()
        while (is_divided := self.axis[node] >= 0).any():
            divided = node[is_divided]
            is_upper = fractions[is_divided, self.axis[divided]] > self.cut[divided]
            node[is_divided] = self.child[divided] + np.where(is_upper, self.step[divided], 0)
        return self.proved_index[node]


def merged_enclosure(parts: list[Enclosure], masks: list[np.ndarray]) -> Enclosure:
    """Return the boxes of several enclosures that masks select, without claims."""

    def joined(values: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([value[mask] for value, mask in zip(values, masks, strict=True)])

    boxes = Boxes(
        middle=joined([part.boxes.middle for part in parts]),
        generators=joined([part.boxes.generators for part in parts]),
        unknowns=joined([part.boxes.unknowns for part in parts]),
        rounding=parts[0].boxes.rounding,
    )
    return Enclosure(
        boxes=boxes,
        sensitivity=joined([part.sensitivity for part in parts]),
        uniqueness_radius=joined([part.uniqueness_radius for part in parts]),
        remainder=joined([part.remainder for part in parts]),
        has_unique_solution=joined([part.has_unique_solution for part in parts]),
        influence=joined([part.influence for part in parts]),
    )
