"""Synthesis from one call: search, gradients, and machine files that are checked and certified."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError
from tauloop.common.execution.processes import cores
from tauloop.common.files import unreadable, write_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.design.synthesis.designs import DesignedMachine, designed_machine
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import (
    FEASIBLE,
    UNKNOWN_VIOLATION,
    Scores,
    TaskEvaluator,
)
from tauloop.design.synthesis.polishing import LocalSearch, Polished
from tauloop.design.synthesis.polling import polled_design
from tauloop.design.synthesis.pose_measures import REACH
from tauloop.design.synthesis.search import Score, SearchHistory, not_dominated, search_designs
from tauloop.design.synthesis.sharing import SharedScores
from tauloop.design.synthesis.task import RESERVE, WITHOUT_SLOPES, DesignTask
from tauloop.design.synthesis.task_reading import read_task
from tauloop.design.synthesis.words import (
    NEIGHBOR_STEP,
    RequirementState,
    active_texts,
    requirement_states,
)

#: Start of the names of written machines.
_DESIGN = "design_"
#: File that states to which task the checkpoints of a folder belong.
TASK_FILE = "task.json"
#: Number of candidates from which local searches for the smallest violation start.
REPAIR_STARTS = 3
#: Maximum number of halvings of a step to a design that violates a requirement without gradients.
STEP_HALVINGS = 8
#: Weight of the other objectives in a local search that improves a single objective.
OTHER_WEIGHT = 1e-3
#: Relative change below which objectives count as equal.
EQUALITY_TOLERANCE = 1e-9
#: Type of a local search. Its arguments are a start (d,), weights of the objectives, and upper bounds
#: of the objectives (k,) or None.
Improve = Callable[[np.ndarray, list[float], np.ndarray | None], Polished]


def _workers(text: str) -> int | str:
    """Return a number of workers, or the address of a cluster."""
    return int(text) if text.lstrip("-").isdecimal() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisOptions(Options):
    """Workers of a synthesis, and whether to resume it.

    Attributes:
        workers: number of parallel threads, and of processes that evaluate candidates of tasks with
            stiffness, modes, accuracy, loads or motors; or the address of a Dask scheduler, such as
            'tcp://127.0.0.1:8786' ('local' starts one on this computer). Results do not depend on
            it. By default one per core, and processes if the search would take more than half a
            minute (a script must keep its work below `if __name__ == '__main__':`).
        resume: reuse the results in the folder.

    Examples:
        >>> import tauloop as tl
        >>> tl.SynthesisOptions(workers=2).resume
        False
    """

    workers: int | str | None = option(
        None, least=1, flag="--workers -j", read=_workers, metavar="N"
    )
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborDesign(ReprMixin):
    """A design that differs from another design in one variable, and why it is not better.

    Attributes:
        variable: the changed variable.
        value: value of this variable, SI.
        reason: the violated requirement, or the objective that becomes worse.
        is_better: whether the neighbor is better, which shows that the search has not converged.
    """

    variable: str
    value: float
    reason: str
    is_better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizedDesign(ReprMixin):
    """A design of a task.

    Attributes:
        name: name of its files.
        variables: values of the free variables by name, SI.
        objectives: values of the objectives by name, SI, evaluated also between the poses of the
            search.
        violation: largest relative violation, evaluated without the compiled batch, and also between
            the poses of the search.
        active: texts on active requirements and bounds.
        neighbors: neighboring designs, and why they are not better.
        machine: the machine of the design, checked, certified and simulated.
        files: files that were written.
    """

    name: str
    variables: dict[str, float]
    objectives: dict[str, float]
    violation: float
    active: tuple[str, ...]
    neighbors: tuple[NeighborDesign, ...]
    machine: DesignedMachine
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludingRequirement(ReprMixin):
    """The requirement that no candidate meets, at the candidate with the smallest maximum violation.

    Attributes:
        name: the requirement with the largest violation.
        violation: relative violation of this requirement; the search found no smaller value.
        text: text with the value, the limit and the pose.
        others: texts on further requirements with the same violation.
        variables: values of the variables at that candidate, SI.
    """

    name: str
    violation: float
    text: str
    others: tuple[str, ...]
    variables: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizedStructure(ReprMixin):
    """Designs of one structure for a task.

    Attributes:
        name: name of the structure.
        machine: name of its machine.
        variable_names, variable_units: free variables and their SI units.
        objective_names, objective_units: objectives and their SI units.
        front: Pareto front: objectives (N, k) of the non-dominated candidates, SI.
        front_variables: variables (N, d) of these candidates, SI.
        evaluated: number of candidates that the search evaluated.
        screened: number of random candidates that were screened before the search.
        resumed: number of generations that were read from checkpoints.
        designs: the chosen designs.
        exclusion: the requirement that no candidate meets; None if a candidate meets the task.
        note: note on quantities at few poses, and on missing derivatives.
    """

    name: str
    machine: str
    variable_names: tuple[str, ...]
    variable_units: tuple[str, ...]
    objective_names: tuple[str, ...]
    objective_units: tuple[str, ...]
    front: np.ndarray
    front_variables: np.ndarray
    evaluated: int
    screened: int
    resumed: int
    designs: tuple[SynthesizedDesign, ...]
    exclusion: ExcludingRequirement | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis(Result):
    """Designs of a task, of one or several structures.

    Attributes:
        description: purpose of the machine.
        structures: the structures, in the order of the file.
        folder: folder of the machine files; None if none were written.
    """

    description: str
    structures: tuple[SynthesizedStructure, ...]
    folder: str | None = field(metadata=OMITTED)

    @property
    def machine(self) -> str:
        """Names of the machines."""
        return ", ".join(item.machine for item in self.structures)

    def variables(self) -> Iterator[Variable]:
        """Return the largest violation of every design."""
        designs = [(s.name, d) for s in self.structures for d in s.designs]
        yield from rows("design", [f"{structure} {design.name}" for structure, design in designs])
        values = [design.violation for _, design in designs]
        yield Variable(name="violation", values=values, over=("design",), unit="1")


@keywords(SynthesisOptions)
def synthesize(
    task: str | Path,
    folder: str | Path | None = None,
    options: SynthesisOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Synthesis:
    """Return dimensions of machines that meet a task.

    The synthesis has two stages:

    1. NSGA-II searches the free parameters and the center of the box. Every generation is a batch of
       compiled code over all poses.
    2. SLSQP with exact derivatives improves the chosen designs. Worse poses between those of the
       search are added until there are none.

    Forces and speeds of actuators, under load cases and over a motion, are computed only for candidates
    that meet the geometric requirements. Stiffness, deflection, first mode, accuracy and forces in
    joints are computed only for candidates that also meet these, at the center and at eight of the
    hardest poses of the box. Derivatives of stiffness, first mode, and forces and speeds of actuators
    are finite differences. If an objective has neither, a direct search polls neighbors. If no
    candidate meets the task, the largest relative violation is minimized: first that of reach, then
    that of the other requirements.

    Args:
        task: the task file (tauloop-synthesis/1).
        folder: folder of machine files, proofs and checkpoints; none are written without it.
        options: workers, and whether to resume.
        progress: called with the completed and the total number of steps.

    Returns:
        The designs of every structure, or the requirement that excludes all candidates.

    Raises:
        DescriptionError: the file has errors.
        InputError: a machine is not supported, the folder has checkpoints of another task, or no
            folder is given with `resume`.
        EngineError: pymoo, SciPy or a compiler is missing, or the workers cannot be used.

    Source: Deb et al. 2002, NSGA-II; Hettich and Kortanek 1993, Semi-infinite programming; Kolda,
    Lewis and Torczon 2003, Optimization by direct search.

    Examples:
        >>> import tauloop as tl
        >>> tl.synthesize("missing.yaml")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.DescriptionError: there is no such file (missing.yaml)
        ...
    """
    options = options or SynthesisOptions()
    tasks = read_task(task)
    target = None if folder is None else Path(folder)
    if target is None and options.resume:
        remedy = "give the folder of the search (--out FOLDER/)"
        raise InputError.of("resume", "there is no folder to continue from", remedy)
    stages = Stages(progress, 2 * len(tasks))
    structures = []
    for item in tasks:
        task_folder = target
        if target is not None and len(tasks) > 1:
            task_folder = target / item.name
        checkpoints = _checkpoints(task_folder, item, options)
        structures.append(_structure(item, task_folder, checkpoints, options, stages))
    return Synthesis(
        description=tasks[0].description,
        structures=tuple(structures),
        folder=None if target is None else str(target),
        diagnostics=tuple(_diagnostics(structures)),
        provenance=provenance(
            options={"task": Path(task).name},
            inputs={"machine": ", ".join(item.model.mechanism.name for item in tasks)},
            packages=("numpy", "scipy", "casadi", "pymoo"),
        ),
    )


def _checkpoints(
    task_folder: Path | None, task: DesignTask, options: SynthesisOptions
) -> Path | None:
    """Create and return the folder of the checkpoints of a task; None without a folder.

    Raises:
        InputError: the folder belongs to another task, it exists and `resume` is not set, or it
            contains designs without their search.
    """
    if task_folder is None:
        return None
    folder = task_folder / "search"
    state = folder / TASK_FILE
    if state.exists():
        reason = unreadable(state)
        text = "" if reason else state.read_text(encoding="utf-8", errors="replace")
        if json.dumps(task.digest) not in text:
            remedy = "choose another folder, or remove this one"
            what = f"{task_folder} contains designs of another task"
            raise InputError.of("out", what, remedy)
        if not options.resume:
            remedy = "continue it with resume (--resume), or choose another folder"
            raise InputError.of(
                "out", f"{task_folder} already contains a search of this task", remedy
            )
    elif designs := sorted(task_folder.glob(f"{_DESIGN}*")):
        what = f"{task_folder} contains {designs[0].name}, but not the search that wrote it"
        raise InputError.of("out", what, "choose another folder, or move these files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot be created ({error.strerror})"
        raise InputError.of(str(folder), what, "choose another folder") from error
    write_text(state, json.dumps({"task": task.digest}) + "\n")
    return folder


def _structure(
    task: DesignTask,
    task_folder: Path | None,
    checkpoints: Path | None,
    options: SynthesisOptions,
    stages: Stages,
) -> SynthesizedStructure:
    """Return the designs of one structure."""
    threads = options.workers if isinstance(options.workers, int) else cores()
    evaluator = TaskEvaluator(task, threads)
    expensive = ExpensiveScores(evaluator)
    with closing(SharedScores(expensive, task, options.workers)) as shared:
        history = search_designs(evaluator, shared, checkpoints, stages.part)
        stages.done()
        least_violating = None
        if not len(history.front):
            least_violating = _least_violating(evaluator, history)
        chosen = _chosen(evaluator, expensive, history, least_violating, shared)
    designs = []
    for number, x in enumerate(chosen, 1):
        designs.append(_design(evaluator, expensive, x, f"{_DESIGN}{number}", task_folder))
        stages.part(number, len(chosen))
    exclusion = None
    if not chosen and least_violating is not None:
        exclusion = _exclusion(evaluator, expensive, least_violating)
    stages.done()
    signs = np.array([1.0 if o.is_minimized else -1.0 for o in task.objectives])
    front, front_variables = _pareto_front(evaluator, expensive, history, chosen)
    return SynthesizedStructure(
        name=task.name,
        machine=task.model.mechanism.name,
        variable_names=tuple(v.name for v in task.variables),
        variable_units=tuple(v.si_unit for v in task.variables),
        objective_names=tuple(o.name for o in task.objectives),
        objective_units=tuple(o.unit for o in task.objectives),
        front=front * signs,
        front_variables=front_variables,
        evaluated=len(history.x),
        screened=history.screened,
        resumed=history.resumed,
        designs=tuple(designs),
        exclusion=exclusion,
        note=_note(task, expensive) if len(front) else "",
    )


def _note(task: DesignTask, expensive: ExpensiveScores) -> str:
    """Return a note on the poses of expensive quantities, and on missing derivatives."""
    parts = []
    if expensive.elastic:
        names = _names(expensive.elastic)
        parts.append(f"{names}: worst of {len(expensive.poses)} poses of the box")
    if expensive.differenced:
        parts.append(f"{_names(expensive.differenced)}: derivatives are differences")
    others = [name for name in expensive.wanted if name in WITHOUT_SLOPES]
    if others:
        part = "improved designs were checked for them"
        if not _has_gradients(task):
            part = "neighbors were polled instead of following gradients"
        parts.append(f"{_names(others)}: computed without gradients; {part}")
    if task.motion.catalogue is not None and not task.motion.has_time_law:
        parts.append(
            "motors: chosen after the search, because the motion has no time law; give "
            "motion.duration, cycle or trajectory for a search within the catalogue"
        )
    return "; ".join(parts)


def _names(quantities: Sequence[str]) -> str:
    """Return the names of quantities as text."""
    return ", ".join(name.replace("_", " ") for name in quantities)


def _pareto_front(
    evaluator: TaskEvaluator,
    expensive: ExpensiveScores,
    history: SearchHistory,
    chosen: list[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return objectives (N, k) and variables (N, d) of the Pareto front of candidates and designs."""
    front = history.front
    objectives = history.objectives[front]
    x = history.x[front]
    if len(front) and chosen:
        improved = [_scores(evaluator, expensive, design).objectives[0] for design in chosen]
        objectives = np.concatenate([objectives, improved])
        x = np.concatenate([x, chosen])
        _, first = np.unique(objectives, axis=0, return_index=True)
        first = np.sort(first)
        objectives = objectives[first]
        x = x[first]
        is_efficient = not_dominated(objectives)
        objectives = objectives[is_efficient]
        x = x[is_efficient]
    return objectives, x


def _chosen(
    evaluator: TaskEvaluator,
    expensive: ExpensiveScores,
    history: SearchHistory,
    least_violating: np.ndarray | None,
    score: Score,
) -> list[np.ndarray]:
    """Return the designs (d,) of a search; none if no candidate meets the task.

    Args:
        evaluator: the task's evaluator.
        expensive: its expensive quantities.
        history: the search.
        least_violating: candidate with the smallest maximum violation, after a local search; None if
            the search has candidates that meet the task.
        score: scores of populations.
    """
    task = evaluator.task
    if least_violating is None:
        picked = _picked(history, task.search.designs)
        if not _has_gradients(task):
            return _polled(task, history, picked, score)
        return _improved(evaluator, expensive, history, picked)
    scores = _scores(evaluator, expensive, least_violating)
    is_feasible = scores.worst[0] <= FEASIBLE and np.isfinite(scores.objectives).all()
    if not is_feasible:
        return []
    if not _has_gradients(task):
        return [least_violating]
    local = LocalSearch(evaluator, expensive)
    weights = [1.0] * len(task.objectives)
    improved = local.improve(least_violating, weights).x
    return [_last_feasible(evaluator, expensive, least_violating, improved)]


def _scores(evaluator: TaskEvaluator, expensive: ExpensiveScores, x: np.ndarray) -> Scores:
    """Return the scores of a design (d,), with the expensive quantities."""
    scores = evaluator.scores(x[None])
    return expensive.complete(x[None], scores) if expensive.wanted else scores


def _picked(history: SearchHistory, count: int) -> list[int]:
    """Return indices of candidates of the front.

    The best candidate in each objective comes first. Then the candidates farthest from those already
    picked are added.
    """
    front = history.front
    objectives = history.objectives[front]
    picked = list(dict.fromkeys(int(i) for i in np.argmin(objectives, axis=0)))
    width = np.maximum(np.ptp(objectives, axis=0), 1e-300)
    while len(picked) < min(count, len(front)):
        gaps = (objectives[:, None] - objectives[picked][None]) / width
        distance = np.linalg.norm(gaps, axis=2).min(axis=1)
        picked.append(int(np.argmax(distance)))
    return [int(front[i]) for i in picked[:count]]


def _weights(history: SearchHistory, i: int) -> tuple[list[float], np.ndarray | None]:
    """Return the weights of the objectives for a local search from candidate i, and their limits.

    A candidate that is the best in an objective is improved in this objective, without limits. For any
    other candidate, all objectives have the same weight, and none may become worse.
    """
    objectives = history.objectives[history.front]
    best = np.flatnonzero(history.objectives[i] <= objectives.min(axis=0))
    if len(best):
        return _main_weights(objectives.shape[1], int(best[0])), None
    return [1.0] * objectives.shape[1], history.objectives[i]


def _main_weights(count: int, main: int) -> list[float]:
    """Return weights with which one objective dominates, and the others break ties."""
    return [1.0 if k == main else OTHER_WEIGHT for k in range(count)]


def _polled(
    task: DesignTask, history: SearchHistory, picked: list[int], score: Score
) -> list[np.ndarray]:
    """Return the picked designs after a local search that polls neighbors."""
    designs = []
    for i in picked:
        weights, limits = _weights(history, i)
        designs.append(polled_design(score, task.bounds, history.x[i], weights, limits))
    return _non_dominated(designs, score(np.array(designs)).objectives)


def _non_dominated(designs: list[np.ndarray], objectives: np.ndarray) -> list[np.ndarray]:
    """Return the designs whose objectives (N, k) no other design dominates."""
    is_efficient = not_dominated(objectives)
    return [x for x, is_chosen in zip(designs, is_efficient, strict=True) if is_chosen]


def _improved(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, history: SearchHistory, picked: list[int]
) -> list[np.ndarray]:
    """Return the picked designs after a local search, without dominated designs.

    With two objectives, the designs between the best in each objective are instead distributed evenly
    along the front (`_between`).
    """
    local = LocalSearch(evaluator, expensive)

    def improve(start: np.ndarray, weights: list[float], limits: np.ndarray | None) -> Polished:
        point = local.improve(start, weights, limits)
        return replace(point, x=_last_feasible(evaluator, expensive, start, point.x))

    count = len(evaluator.task.objectives)
    if count == 2 and len(picked) > count:
        points = _between(improve, local.objectives, history, len(picked))
    else:
        points = [improve(history.x[i], *_weights(history, i)) for i in picked]
    feasible = [point.x for point in points if point.violation <= FEASIBLE]
    if not feasible:
        feasible = [min(points, key=lambda point: point.violation).x]
    objectives = np.array([_scores(evaluator, expensive, x).objectives[0] for x in feasible])
    return _non_dominated(feasible, objectives)


def _has_gradients(task: DesignTask) -> bool:
    """Return whether all objectives have derivatives, exact or by finite differences."""
    return all(objective.quantity not in WITHOUT_SLOPES for objective in task.objectives)


def _last_feasible(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Return the point (d,) farthest from a start, towards an end, that meets all requirements.

    The local search ignores requirements without gradients. Its step is therefore halved until they are
    met. The start meets them, and is returned if no halved step does.
    """
    if not expensive.wanted:
        return end
    for halving in range(STEP_HALVINGS):
        x = start + 0.5**halving * (end - start)
        if _scores(evaluator, expensive, x).worst[0] <= FEASIBLE:
            return x
    return start


def _between(
    improve: Improve,
    objectives_of: Callable[[np.ndarray], np.ndarray],
    history: SearchHistory,
    count: int,
) -> list[Polished]:
    """Return the best designs in each of two objectives, and designs between them.

    Between the best designs, one objective is improved while the other is limited to a level. The
    levels divide the range of the first objective into equal parts, then the range of the second.

    Args:
        improve: local search.
        objectives_of: returns the objectives (2,) of a design (d,).
        history: the search.
        count: number of designs.
    """
    x = history.x[history.front]
    objectives = history.objectives[history.front]
    points = []
    for k in range(2):
        start = int(np.argmin(objectives[:, k]))
        points.append(improve(x[start], _main_weights(2, k), None))
    ends = np.array([objectives_of(point.x) for point in points])
    x = np.concatenate([x, [point.x for point in points]])
    objectives = np.concatenate([objectives, ends])
    for k, levels in ((0, count - 2 - (count - 2) // 2), (1, (count - 2) // 2)):
        for fraction in np.linspace(0.0, 1.0, levels + 2)[1:-1]:
            level = ends[k, k] + fraction * (ends[1 - k, k] - ends[k, k])
            within = np.flatnonzero(objectives[:, k] <= level)
            start = int(within[np.argmin(objectives[within, 1 - k])])
            limits = np.where(np.arange(2) == k, level, np.inf)
            point = improve(x[start], _main_weights(2, 1 - k), limits)
            points.append(point)
            x = np.concatenate([x, [point.x]])
            objectives = np.concatenate([objectives, [objectives_of(point.x)]])
    return sorted(points, key=lambda point: float(objectives_of(point.x)[0]))


def _design(
    evaluator: TaskEvaluator,
    expensive: ExpensiveScores,
    x: np.ndarray,
    name: str,
    folder: Path | None,
) -> SynthesizedDesign:
    """Return a design with its machine, whose files are written to a folder if one is set."""
    task = evaluator.task
    states = requirement_states(evaluator, expensive, x)
    doubts = tuple(expensive.doubts)
    machine, certification = designed_machine(evaluator, x, expensive.actuators.motion)
    machine = replace(machine, problems=(*machine.problems, *doubts))
    files = []
    if folder is not None:
        files.append(str(write_text(folder / f"{name}.yaml", machine.text)))
        if certification is not None and certification.verdict == "proved":
            files.append(str(certification.write_proof(folder / f"{name}.proof.json")))
    objectives = _objectives(evaluator, expensive, x)
    return SynthesizedDesign(
        name=name,
        variables={v.name: float(value) for v, value in zip(task.variables, x, strict=True)},
        objectives=dict(zip([o.name for o in task.objectives], objectives, strict=True)),
        violation=max(map(_known, states)),
        active=active_texts(states, task.variables, x),
        neighbors=tuple(_neighbors(evaluator, expensive, x)),
        machine=machine,
        files=tuple(files),
    )


def _objectives(evaluator: TaskEvaluator, expensive: ExpensiveScores, x: np.ndarray) -> list[float]:
    """Return the objectives of a design, SI, evaluated also between the poses of the task."""
    scores = _scores(evaluator, expensive, x)
    worst = evaluator.worst_values(x)
    values = []
    for objective, score in zip(evaluator.task.objectives, scores.objectives[0], strict=True):
        value = float(score if objective.is_minimized else -score)
        values.append(worst.get(objective.quantity, value))
    return values


def _neighbors(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, x: np.ndarray
) -> Iterator[NeighborDesign]:
    """Yield the designs one step along each variable, and why they are not better."""
    objectives = _scores(evaluator, expensive, x).objectives[0]
    for i, variable in enumerate(evaluator.task.variables):
        for sign in (-1.0, 1.0):
            other = x.copy()
            other[i] += sign * NEIGHBOR_STEP * (variable.upper - variable.lower)
            reason = "beyond its bounds"
            is_better = False
            if variable.lower <= other[i] <= variable.upper:
                reason, is_better = _compared(evaluator, expensive, other, objectives)
            yield NeighborDesign(
                variable=variable.name,
                value=float(other[i]),
                reason=reason,
                is_better=is_better,
            )


def _compared(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, x: np.ndarray, objectives: np.ndarray
) -> tuple[str, bool]:
    """Return how a design (d,) compares with given objectives (k,), and whether it is better."""
    task = evaluator.task
    scores = _scores(evaluator, expensive, x)
    worst = int(np.argmax(scores.violations[0]))
    violation = float(scores.violations[0, worst])
    if violation > FEASIBLE:
        return f"{task.requirements[worst].name} fails by {100.0 * violation:.3g} %", False
    changes = (scores.objectives[0] - objectives) / np.maximum(np.abs(objectives), 1e-300)
    names = [objective.name for objective in task.objectives]
    undefined = [name for name, change in zip(names, changes, strict=True) if np.isnan(change)]
    if undefined:
        return f"{', '.join(undefined)} cannot be computed", False
    worse = [
        f"{name} is worse by {100.0 * change:.3g} %"
        for name, change in zip(names, changes, strict=True)
        if not change <= EQUALITY_TOLERANCE
    ]
    if worse:
        return ", ".join(worse), False
    if not (changes < -EQUALITY_TOLERANCE).any():
        return "as good", False
    state = max(requirement_states(evaluator, expensive, x), key=_known)
    if _known(state) > FEASIBLE:
        return f"{state.requirement.name} fails by {100.0 * _known(state):.3g} %", False
    better = [
        name for name, change in zip(names, changes, strict=True) if change < -EQUALITY_TOLERANCE
    ]
    return f"better: {', '.join(better)}", True


def _least_violating(evaluator: TaskEvaluator, history: SearchHistory) -> np.ndarray:
    """Return the variables (d,) with the smallest maximum violation, after a local search."""
    worst_cheap = history.violations[:, list(evaluator.cheap)].max(axis=1)
    # For candidates with poses out of reach, the other quantities refer only to the poses within reach.
    worst_cheap[history.violations[:, evaluator.reach] > RESERVE] += UNKNOWN_VIOLATION
    if (worst_cheap > 0.0).all():
        local = LocalSearch(evaluator)
        starts = np.argsort(worst_cheap, kind="stable")[:REPAIR_STARTS]
        points = [local.repair(history.x[i]) for i in starts]
        return min(points, key=lambda point: point.violation).x
    passing = np.flatnonzero(worst_cheap <= 0.0)
    worst = history.violations[passing].max(axis=1)
    return np.asarray(history.x[passing[int(np.argmin(worst))]])


def _exclusion(
    evaluator: TaskEvaluator, expensive: ExpensiveScores, best: np.ndarray
) -> ExcludingRequirement:
    """Return the requirement that no candidate meets, at the variables (d,) with least violation."""
    states = sorted(requirement_states(evaluator, expensive, best), key=_by_importance)
    largest = states[0]
    others = [
        s.text
        for s in states[1:]
        if np.isfinite(s.violation) and s.violation >= largest.violation - 1e-3 * largest.violation
    ]
    names = [variable.name for variable in evaluator.task.variables]
    variables = dict(zip(names, best.tolist(), strict=True))
    if _known(largest) <= FEASIBLE:
        return _undefined_objective(evaluator, expensive, best, variables)
    problem = expensive.problem or expensive.actuators.problem
    if problem and not FEASIBLE < largest.violation < np.inf:
        wanted = _names(expensive.wanted)
        return ExcludingRequirement(
            name=wanted,
            violation=UNKNOWN_VIOLATION,
            text=f"{wanted} cannot be computed: {problem}",
            others=(),
            variables=variables,
        )
    return ExcludingRequirement(
        name=largest.requirement.name,
        violation=_known(largest),
        text=largest.text,
        others=tuple(others),
        variables=variables,
    )


def _by_importance(state: RequirementState) -> tuple[bool, float]:
    """Return a sort key: reach first if it is violated, then by decreasing violation.

    Other requirements are undefined at poses out of reach.
    """
    is_out_of_reach = state.requirement.quantity == REACH and _known(state) > FEASIBLE
    return not is_out_of_reach, -_known(state)


def _undefined_objective(
    evaluator: TaskEvaluator,
    expensive: ExpensiveScores,
    best: np.ndarray,
    variables: dict[str, float],
) -> ExcludingRequirement:
    """Return the objective that is undefined at a candidate (d,) that meets all requirements."""
    values = _scores(evaluator, expensive, best).objectives[0]
    undefined = [
        objective
        for objective, value in zip(evaluator.task.objectives, values, strict=True)
        if not np.isfinite(value)
    ]
    texts = [f"objective {item.name}, {item.text}, is not a number" for item in undefined]
    return ExcludingRequirement(
        name=undefined[0].name,
        violation=UNKNOWN_VIOLATION,
        text=texts[0],
        others=tuple(texts[1:]),
        variables=variables,
    )


def _known(state: RequirementState) -> float:
    """Return the violation of a requirement; UNKNOWN_VIOLATION if it is undefined."""
    return state.violation if np.isfinite(state.violation) else UNKNOWN_VIOLATION


def _diagnostics(structures: list[SynthesizedStructure]) -> Iterator[Diagnostic]:
    """Yield diagnostics: whether the task is met, and whether the designs are sound."""
    designs = [design for structure in structures for design in structure.designs]
    excluded = [item.exclusion for item in structures if item.exclusion is not None]
    least = min((item.violation for item in excluded), default=0.0)
    text = "; ".join(item.text for item in excluded)
    remedy = "Relax this requirement, or widen the bounds"
    if least >= UNKNOWN_VIOLATION:
        remedy = "Correct it, or change the bounds"
    yield diagnostic(
        "least largest violation of the requirements",
        0.0 if designs else least,
        at_most=FEASIBLE,
        advice=f"no candidate meets the task: {text}. {remedy}",
    )
    yield diagnostic(
        "largest violation of a design",
        max((design.violation for design in designs), default=0.0),
        at_most=FEASIBLE,
        advice="give the task more poses",
    )
    for name, is_bad, advice in (
        ("designs that `check` rejects", _is_rejected, "see the problems of the designs"),
        ("designs that are not certified", _is_uncertified, "certify them with more time"),
        ("designs with problems", _has_problems, "see the problems of the designs"),
        (
            "designs with a better neighbor",
            _has_better_neighbor,
            "the search has not converged: give more generations, or a larger population",
        ),
    ):
        yield diagnostic(name, sum(map(is_bad, designs)), at_most=0.0, advice=advice)


def _is_rejected(design: SynthesizedDesign) -> bool:
    return not design.machine.is_usable


def _is_uncertified(design: SynthesizedDesign) -> bool:
    return design.machine.certificate != "proved"


def _has_problems(design: SynthesizedDesign) -> bool:
    return bool(design.machine.problems)


def _has_better_neighbor(design: SynthesizedDesign) -> bool:
    return any(neighbor.is_better for neighbor in design.neighbors)
