"""Tuning: four methods on costs whose minima are known, and what happens when something goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra
from hypothesis import given, settings, strategies as st

from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.drives.tuning.evaluations import Pointwise
from tauloop.drives.tuning.grid import dense_grid
from tauloop.drives.tuning.methods import SQP, Genetic, NelderMead, PatternSearch, SearchMethod
from tauloop.drives.tuning.pareto import pareto_front, robustness
from tauloop.drives.tuning.search import Minimum, minimize, minimize_from

pymoo = extra("pymoo")

#: Every method's own last step or generation leaves the minimum of a parabola this close, as a
#: share of its range.
PLACE = {PatternSearch: 2e-4, SQP: 1e-3, NelderMead: 1e-3, Genetic: 0.03}
#: On a bound the simplex goes flat (points outside are put on it) and ends short, within its first
#: edge.
PLACE_ON_BOUND = PLACE | {NelderMead: NelderMead().simplex}
METHODS = [PatternSearch(), SQP(), NelderMead(), Genetic(seed=3)]
BOUNDS = {"gain": (100.0, 300.0), "time": (0.5, 2.0)}
LOWER, SPAN = np.array([100.0, 0.5]), np.array([200.0, 1.5])
START = [200.0, 1.5]
by_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


def bowl(center: np.ndarray):
    """A parabola over the box, 2 at its centre, whose axes are coupled."""

    def cost(points: np.ndarray) -> np.ndarray:
        x, y = ((points - LOWER) / SPAN - center).T
        return 2.0 + x**2 + 3.0 * y**2 + x * y

    return cost


def two_wells(points: np.ndarray) -> np.ndarray:
    """Wells at 0.2 (depth 1) and 0.8 (depth 1.5) along the first axis of the box."""
    x, y = ((points - LOWER) / SPAN).T
    return (
        2
        - np.exp(-(((x - 0.2) / 0.1) ** 2))
        - 1.5 * np.exp(-(((x - 0.8) / 0.1) ** 2))
        + (y - 0.5) ** 2
    )


@by_method
def test_minimum_inside(method: SearchMethod) -> None:
    center = np.array([0.31, 0.62])
    minimum = minimize(bowl(center), BOUNDS, START, method)
    assert minimum.status is Status.OK, minimum.advice
    assert np.abs((minimum.best - LOWER) / SPAN - center).max() < PLACE[type(method)]
    assert minimum.cost == bowl(center)(minimum.best[None])[0]
    assert minimum.cost == np.nanmin(minimum.costs) == minimum.descent[-1]
    assert minimum.start_cost == bowl(center)(np.array([START]))[0]
    assert (np.diff(minimum.descent) <= 0).all()


@by_method
@settings(max_examples=8, deadline=None, derandomize=True)
@given(center=st.tuples(st.floats(-0.5, -0.1), st.floats(0.1, 0.9)))
def test_minimum_on_a_bound(method: SearchMethod, center: tuple[float, float]) -> None:
    """With x = 0 active, 3 (y - cy)^2 + (0 - cx)(y - cy) is least at cy + cx / 6, or at the corner."""
    minimum = minimize(bowl(np.array(center)), BOUNDS, START, method)
    expected = np.array([0.0, np.clip(center[1] + center[0] / 6, 0.0, 1.0)])
    assert np.abs((minimum.best - LOWER) / SPAN - expected).max() < PLACE_ON_BOUND[type(method)]
    assert ((minimum.points >= LOWER) & (minimum.points <= LOWER + SPAN)).all()


@by_method
def test_start_on_the_minimum_is_kept(method: SearchMethod) -> None:
    minimum = minimize(bowl((np.array(START) - LOWER) / SPAN), BOUNDS, START, method)
    assert minimum.cost == 2.0
    np.testing.assert_array_equal(minimum.best, START)


def test_local_methods_get_stuck_and_the_grid_shows_it() -> None:
    grid = dense_grid(two_wells, BOUNDS, (101, 51))
    assert len(grid.minima) == 2
    np.testing.assert_allclose((grid.minima - LOWER) / SPAN, [[0.8, 0.5], [0.2, 0.5]], atol=1e-12)
    np.testing.assert_array_equal(grid.best, grid.minima[0])
    for method in METHODS[1:3]:
        left, right = minimize_from(two_wells, BOUNDS, [[145.0, 1.0], [250.0, 1.0]], method)
        assert left.cost == pytest.approx(1.0, abs=1e-3), type(method).__name__
        assert right.cost == pytest.approx(grid.cost, abs=1e-3)
    assert minimize(two_wells, BOUNDS, [145.0, 1.0], Genetic(seed=0)).cost == pytest.approx(
        grid.cost, abs=0.01
    )


@by_method
def test_same_call_same_history(method: SearchMethod) -> None:
    first, second = (minimize(two_wells, BOUNDS, START, method) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.costs, second.costs)


def test_seed_changes_the_genetic_algorithm() -> None:
    first, second = (minimize(two_wells, BOUNDS, START, Genetic(seed=seed)) for seed in (0, 1))
    assert not np.array_equal(first.points, second.points)


@by_method
def test_costs_that_are_not_finite_are_priced(method: SearchMethod) -> None:
    """Half of the box diverges; the minimum of the other half lies beside the edge."""
    center = np.array([0.45, 0.5])

    def cost(points: np.ndarray) -> np.ndarray:
        x = (points[:, 0] - LOWER[0]) / SPAN[0]
        return np.where(x > 0.5, np.where(points[:, 1] > 1.0, np.nan, np.inf), bowl(center)(points))

    minimum = minimize(cost, BOUNDS, [130.0, 0.8], method)
    assert minimum.cost == pytest.approx(2.0, abs=0.01)
    assert np.isfinite(minimum.best).all()
    assert not np.isinf(minimum.costs).any()


@by_method
def test_a_start_without_a_cost(method: SearchMethod) -> None:
    """A poll of the neighbors or a generation finds costs; a gradient of nothing does not, and says so."""

    def cost(points: np.ndarray) -> np.ndarray:
        return np.where(points[:, 0] > 190.0, np.nan, bowl(np.array([0.2, 0.5]))(points))

    if isinstance(method, SQP | NelderMead):
        with pytest.raises(InputError, match="evaluations gave a finite cost"):
            minimize(cost, BOUNDS, START, method)
    else:
        minimum = minimize(cost, BOUNDS, START, method)
        assert np.isnan(minimum.start_cost)
        assert minimum.cost == pytest.approx(2.0, abs=0.01)


@by_method
def test_interruption_keeps_the_best_so_far(method: SearchMethod) -> None:
    def watcher(count: int, least: float) -> None:
        if count >= 12:
            raise KeyboardInterrupt

    minimum = minimize(bowl(np.array([0.9, 0.1])), BOUNDS, START, method, watcher=watcher)
    assert minimum.interrupted
    assert minimum.status is Status.DOUBTFUL
    assert "the best point so far is kept" in minimum.advice[0]
    assert minimum.cost == np.min(minimum.costs) <= minimum.start_cost
    assert len(minimize_from(two_wells, BOUNDS, [START, START], method, watcher=watcher)) == 1


@by_method
@pytest.mark.parametrize("budget", [1, 7, 20])
def test_budget(method: SearchMethod, budget: int) -> None:
    minimum = minimize(bowl(np.array([0.9, 0.1])), BOUNDS, START, method, budget=budget)
    assert len(minimum.points) == budget
    assert minimum.ending == f"all {budget} evaluations are used up"


def test_watcher_sees_the_search() -> None:
    seen: list[tuple[int, float]] = []
    minimum = minimize(
        two_wells, BOUNDS, START, watcher=lambda count, least: seen.append((count, least))
    )
    assert seen[-1] == (len(minimum.points), minimum.cost)
    assert [count for count, _ in seen] == sorted({count for count, _ in seen})


def test_stopping_short_of_a_minimum_is_seen() -> None:
    minimum = minimize(bowl(np.array([0.95, 0.05])), BOUNDS, START, budget=3)
    assert minimum.status is Status.DOUBTFUL
    assert any("not a minimum" in advice for advice in minimum.advice)


def test_a_cost_that_is_no_function_is_seen() -> None:
    generator = np.random.default_rng(0)

    def cost(points: np.ndarray) -> np.ndarray:
        return bowl(np.array([0.5, 0.5]))(points) + 0.01 * generator.standard_normal(len(points))

    assert any("not deterministic" in advice for advice in minimize(cost, BOUNDS, START).advice)


@pytest.mark.parametrize("threads", [1, 3])
def test_pointwise_costs_keep_their_order(threads: int) -> None:
    points = np.random.default_rng(0).random((20, 2)) * SPAN + LOWER
    wrapped = Pointwise(lambda point: float(two_wells(point[None])[0]), threads=threads)
    np.testing.assert_array_equal(wrapped(points), two_wells(points))


def test_pareto_front_of_two_parabolas() -> None:
    """The best compromises between two parabolas of equal shape are the line between their centres."""
    first, second = np.array([0.2, 0.3]), np.array([0.8, 0.3])

    def criteria(points: np.ndarray) -> np.ndarray:
        places = (points - LOWER) / SPAN
        result = np.stack(
            [((places - center) ** 2).sum(axis=1) for center in (first, second)], axis=1
        )
        result[places[:, 1] > 0.9] = np.nan
        return result

    front = pareto_front(criteria, BOUNDS, seed=1)
    places = (front.points - LOWER) / SPAN
    # 0.06 off the line costs 0.0036, less than the distance of neighbors on a front of 60 points
    assert np.abs(places[:, 1] - 0.3).max() < 0.06
    assert places[:, 0].min() < 0.25
    assert places[:, 0].max() > 0.75
    np.testing.assert_allclose(front.criteria, criteria(front.points))
    assert (np.diff(front.criteria[:, 0]) >= 0).all()
    assert (np.diff(front.criteria[:, 1]) <= 0).all()


def test_robustness_against_its_closed_form() -> None:
    """Cost = design · plant: its logarithm is normal, with quantiles that are known."""
    scatter = robustness(
        lambda designs, plants: designs[:, 0] * plants[:, 0],
        np.array([[2.0], [4.0]]),
        np.array([3.0]),
        np.array([0.1]),
        samples=20_000,
        generator=np.random.default_rng(0),
    )
    np.testing.assert_allclose(scatter.costs[1], 2 * scatter.costs[0])
    # 1.645 standard deviations hold 90 %; 20 000 samples give the quantile of a logarithm to 0.1 /
    # sqrt(20 000) * 3
    expected = 6.0 * np.exp(0.1 * np.array([-1.645, 0.0, 1.645]))
    np.testing.assert_allclose(scatter.quantiles()[0], expected, rtol=5e-3)
    assert (scatter.failures == 0).all()


def test_robustness_counts_failures() -> None:
    def cost(designs: np.ndarray, plants: np.ndarray) -> np.ndarray:
        return np.where(plants[:, 0] > 1.0, np.nan, designs[:, 0])

    scatter = robustness(
        cost,
        np.array([[1.0]]),
        np.array([1.0]),
        np.array([0.5]),
        samples=4000,
        generator=np.random.default_rng(1),
    )
    # the median of the plants is 1: half fail, to three standard deviations of a coin thrown 4000
    # times
    assert scatter.failures[0] == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(4000))
    assert scatter.quantiles()[0, 2] == np.inf


def test_bad_input_is_refused_with_all_problems_at_once() -> None:
    with pytest.raises(InputError) as error:
        minimize(two_wells, BOUNDS, [400.0, 0.1])
    assert [problem.where for problem in error.value.problems] == ["start: gain", "start: time"]
    assert "400 is outside its bounds 100 to 300" in str(error.value)
    with pytest.raises(InputError) as error:
        minimize(two_wells, {"gain": (3.0, 1.0), "time": (0.0, np.inf)}, [1.0], budget=0)
    assert [problem.where for problem in error.value.problems] == [
        "bounds['gain']",
        "bounds['time']",
        "start",
        "budget",
    ]
    with pytest.raises(InputError, match=r"starts\[1\]: gain"):
        minimize_from(two_wells, BOUNDS, [START, [0.0, 1.0]])
    with pytest.raises(InputError, match="starts: is empty"):
        minimize_from(two_wells, BOUNDS, [])
    with pytest.raises(InputError, match="bounds: are empty"):
        minimize(two_wells, {}, [])
    with pytest.raises(InputError, match="wrap a cost of one point in Pointwise"):
        minimize(lambda points: np.zeros(1), BOUNDS, START)
    with pytest.raises(InputError, match=r"none of \d+ evaluations gave a finite cost"):
        minimize(lambda points: np.full(len(points), np.nan), BOUNDS, START)
    with pytest.raises(InputError, match=r"counts: are \(5,\) for 2 parameters"):
        dense_grid(two_wells, BOUNDS, (5,))
    with pytest.raises(InputError, match="no finite criteria"):
        pareto_front(lambda points: np.full((len(points), 2), np.nan), BOUNDS, generations=2)
    with pytest.raises(InputError) as error:
        robustness(
            lambda designs, plants: designs[:, 0],
            np.array([[1.0]]),
            np.array([0.0]),
            np.array([-1.0]),
            samples=0,
            generator=np.random.default_rng(0),
        )
    assert [problem.where for problem in error.value.problems] == ["nominal", "spread", "samples"]


@pytest.mark.parametrize(
    ("method", "options", "where"),
    [
        (PatternSearch, {"step": 0.0}, "step"),
        (PatternSearch, {"step": 0.1, "tolerance": 0.2}, "tolerance"),
        (SQP, {"difference": -1.0}, "difference"),
        (NelderMead, {"simplex": float("nan")}, "simplex"),
        (Genetic, {"population": 2}, "population"),
        (Genetic, {"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_refused(
    method: type[SearchMethod], options: dict[str, float], where: str
) -> None:
    with pytest.raises(InputError) as error:
        method(**options)
    assert error.value.problems[0].where == where


def test_tuning_is_a_result() -> None:
    minimum = minimize(two_wells, BOUNDS, START)
    assert isinstance(minimum, Minimum)
    assert minimum.provenance.options["method"] == "PatternSearch"
    assert minimum.provenance.inputs == {"gain": [100.0, 300.0], "time": [0.5, 2.0]}
