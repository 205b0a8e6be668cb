"""Global search by NSGA-II, with a checkpoint after every generation.

Source: Deb, Pratap, Agarwal, Meyarivan 2002, A fast and elitist multiobjective genetic algorithm:
NSGA-II, IEEE Transactions on Evolutionary Computation 6 (pymoo's, with constrained dominance).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.files import write_file
from tauloop.common.optional import optional_module
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.design.synthesis.evaluation import Scores, TaskEvaluator
from tauloop.design.synthesis.task import DesignTask

#: Number of random candidates that are screened per member of the first generation.
SCREENED_PER_MEMBER = 50
#: Objective of a candidate that is not evaluated, because it violates a cheap requirement.
NOT_EVALUATED = 1e30
#: Names of the arrays in a checkpoint.
_CHECKPOINT_ARRAYS = ("x", "objectives", "violations")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchHistory:
    """All candidates of a search, in the order of evaluation.

    Attributes:
        x: variables (N, d), SI.
        objectives: objectives (N, k), smaller is better; NaN where not evaluated.
        violations: relative violations (N, r) of the requirements.
        screened: number of random candidates that were screened before the first generation.
        resumed: number of generations that were read from checkpoints.
    """

    x: np.ndarray
    objectives: np.ndarray
    violations: np.ndarray
    screened: int
    resumed: int

    @property
    def is_feasible(self) -> np.ndarray:
        """Whether each candidate meets all requirements (N,)."""
        known = np.isfinite(self.objectives).all(axis=1)
        return np.asarray((self.violations <= 0.0).all(axis=1) & known)

    @property
    def front(self) -> np.ndarray:
        """Indices of the non-dominated feasible candidates, each point once."""
        feasible = np.flatnonzero(self.is_feasible)
        _, first = np.unique(self.objectives[feasible], axis=0, return_index=True)
        distinct = feasible[np.sort(first)]
        is_efficient = not_dominated(self.objectives[distinct])
        return np.asarray(distinct[is_efficient])


#: A function that returns cheap and expensive scores of candidates (N, d).
Score = Callable[[np.ndarray], Scores]


def not_dominated(objectives: np.ndarray) -> np.ndarray:
    """Return whether no other point dominates each point (N, k); smaller is better.

    Returns:
        A mask (N,) of the Pareto-optimal points.
    """
    order = np.lexsort(objectives.T[::-1])
    is_efficient = np.zeros(len(objectives), dtype=bool)
    front = np.zeros((0, objectives.shape[1]))
    for index in order:
        point = objectives[index]
        is_dominated = ((front <= point).all(axis=1) & (front < point).any(axis=1)).any()
        if not is_dominated:
            is_efficient[index] = True
            front = np.concatenate([front, point[None]])
    return is_efficient


def search_designs(
    evaluator: TaskEvaluator,
    score: Score,
    checkpoints: Path | None = None,
    progress: Progress | None = None,
) -> SearchHistory:
    """Return the history of a search of a task.

    The search ends before its last generation if the algorithm produces no new candidates. A resumed
    search repeats all generations, with stored scores for those that were evaluated before. So it
    continues as if it had not been interrupted.

    Args:
        evaluator: cheap quantities, for the screening of the first generation.
        score: scores of a generation.
        checkpoints: folder of the generations; None to store none.
        progress: called with the number of completed generations and the number of all generations.

    Raises:
        InputError: the folder belongs to another task.
        EngineError: pymoo is not installed.
    """
    task = evaluator.task
    lower, upper = task.bounds
    algorithm, problem = _algorithm(task, _first_generation(evaluator))
    static_problem = _pymoo("pymoo.problems.static").StaticProblem
    pymoo_evaluator = _pymoo("pymoo.core.evaluator").Evaluator()
    parts: list[dict[str, np.ndarray]] = []
    resumed = 0
    for generation in range(task.search.generations):
        members = algorithm.ask()
        if members is None or not len(members):
            break
        x = lower + np.clip(members.get("X"), 0.0, 1.0) * (upper - lower)
        path = None if checkpoints is None else checkpoints / f"generation_{generation:05d}.npz"
        part = _stored(path, x)
        if part is None:
            scores = score(x)
            part = {"x": x, "objectives": scores.objectives, "violations": scores.violations}
            _store(path, part)
        else:
            resumed += 1
        parts.append(part)
        F = np.where(np.isfinite(part["objectives"]), part["objectives"], NOT_EVALUATED)
        G = np.maximum(part["violations"], -1.0)
        pymoo_evaluator.eval(static_problem(problem, F=F, G=G), members)
        algorithm.tell(infills=members)
        if progress is not None:
            progress(generation + 1, task.search.generations)
    return SearchHistory(
        x=np.concatenate([part["x"] for part in parts]),
        objectives=np.concatenate([part["objectives"] for part in parts]),
        violations=np.concatenate([part["violations"] for part in parts]),
        screened=SCREENED_PER_MEMBER * task.search.population,
        resumed=resumed,
    )


def _pymoo(module: str) -> Any:
    """Return a module of pymoo."""
    return optional_module(module, "pymoo", "design")


def _algorithm(task: DesignTask, first: np.ndarray) -> tuple[Any, Any]:
    """Return the algorithm with its first generation (N, d) on the unit box, and its problem."""
    problem = _pymoo("pymoo.core.problem").Problem(
        n_var=len(task.variables),
        n_obj=len(task.objectives),
        n_ieq_constr=len(task.requirements),
        xl=0.0,
        xu=1.0,
    )
    algorithm = _pymoo("pymoo.algorithms.moo.nsga2").NSGA2(pop_size=len(first), sampling=first)
    algorithm.setup(
        problem,
        termination=("n_gen", task.search.generations),
        seed=task.search.seed,
        verbose=False,
    )
    return algorithm, problem


def _first_generation(evaluator: TaskEvaluator) -> np.ndarray:
    """Return the first generation (N, d) on the unit box: the best of many random candidates.

    The candidates with the smallest maximum violation are chosen. The nominal machine replaces the last
    member if it is within the bounds.
    """
    task = evaluator.task
    lower, upper = task.bounds
    generator = np.random.default_rng(task.search.seed)
    count = SCREENED_PER_MEMBER * task.search.population
    candidates = generator.random((count, len(task.variables)))
    scores = evaluator.scores(lower + candidates * (upper - lower), leaves_early=True)
    worst = np.maximum(scores.worst, 0.0)
    members = candidates[np.argsort(worst, kind="stable")[: task.search.population]]
    parameters = task.model.mechanism.parameters
    nominal = [
        parameters[v.parameters[0]].value if v.axis is None else task.center[v.axis]
        for v in task.variables
    ]
    nominal_member = (np.array(nominal) - lower) / (upper - lower)
    if ((nominal_member >= 0.0) & (nominal_member <= 1.0)).all():
        members[-1] = nominal_member
    return members


def _stored(path: Path | None, x: np.ndarray) -> dict[str, np.ndarray] | None:
    """Return the stored scores of a generation; None if there are none.

    Raises:
        InputError: the file cannot be read, or belongs to other candidates.
    """
    if path is None or not path.exists():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            part = {name: np.asarray(data[name], dtype=float) for name in _CHECKPOINT_ARRAYS}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        what = f"cannot be read ({type(error).__name__})"
        raise InputError.of(
            str(path), what, "remove the file, so that its generation is repeated"
        ) from error
    if part["x"].shape != x.shape or not np.allclose(part["x"], x, rtol=1e-12, atol=1e-15):
        what = "contains another generation than this search makes"
        raise InputError.of(str(path), what, "choose another folder, or remove its checkpoints")
    return part


def _store(path: Path | None, part: dict[str, np.ndarray]) -> None:
    """Write a generation; a reader never sees an incomplete file."""
    if path is None:
        return

    def write(target: Path) -> None:
        with target.open("wb") as stream:
            np.savez(stream, **part)  # type: ignore[arg-type]

    write_file(path, write)
