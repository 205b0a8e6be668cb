"""The tuning experiment, made small: tables, diagnostics, and what becomes of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from extras import extra

from tauloop.common.result import plain
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.drives import Axis, load_drive
from tauloop_papers.dual_motor.results import slave_share
from tauloop_papers.dual_motor.settings import SETTINGS
from tauloop_papers.dual_motor.tuning import DriveTuning, run
from tauloop_papers.dual_motor.tuning_figures import figures

extra("pymoo")
#: Rounding errors of a criterion (s, rad or J) after all steps of a simulation. They depend on the
#: number of simulations that one vector register computes: 5e-12 was seen.
ROUNDING = 1e-10
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler"),
]


@pytest.fixture(scope="module")
def tuned() -> DriveTuning:
    """The experiment with few evaluations; its steps are as told."""
    studies = tuple(replace(study, grid=(4, 4, 3)[: len(study.grid)]) for study in SETTINGS.studies)
    small = replace(
        SETTINGS, genetic=(4, 2), front=(8, 3), scatter_samples=5, budget=40, studies=studies
    )
    steps: list[str] = []
    result = run(steps.append, small)
    assert sum("genetic" in step for step in steps) == 5
    return result


def test_every_method_from_every_start(tuned: DriveTuning) -> None:
    assert [len(table.searches) for table in tuned.tables] == [4, 8, 8]
    for table in tuned.tables:
        least = min(search.cost for search in table.searches)
        assert table.best.cost == least
        for search in table.searches:
            assert search.cost <= search.start_cost
            assert search.cost == search.descent[-1] == min(search.descent)
            assert len(search.descent) == search.evaluations
            assert search.above == pytest.approx(search.cost / min(least, table.grid_cost) - 1.0)


def test_costs_are_those_of_single_steps(tuned: DriveTuning) -> None:
    """The cost at every optimum, put together from the criteria of one step by hand."""
    axis = Axis(load_drive(tuned.settings.line))
    for table in tuned.tables:
        step = table.study.criteria(axis, np.array([table.best.best]))
        parts = [getattr(step, name)[0] / weight for name, weight in table.study.weights.items()]
        expected = max(parts) if table.study.combine == "worst" else sum(parts)
        largest = ROUNDING / min(table.study.weights.values())
        assert table.best.cost == pytest.approx(expected, rel=1e-12, abs=largest)
        assert table.best.parts == pytest.approx(parts, rel=1e-12, abs=largest)
        for search in table.searches:
            whole = (
                max(search.start_parts)
                if table.study.combine == "worst"
                else sum(search.start_parts)
            )
            assert search.start_cost == pytest.approx(whole, rel=1e-12)
        assert table.refined < 1e-6  # 5e-8 seen


def test_exact_gradients_end_as_low_as_differences(tuned: DriveTuning) -> None:
    assert len(tuned.exact) == len(tuned.tables)
    for table, search in zip(tuned.tables, tuned.exact, strict=True):
        assert search.cost <= search.start_cost
        assert search.evaluations <= max(
            search.evaluations for search in table.searches if search.method == "SQP"
        )


def test_switching_that_means_nothing_has_no_cost(tuned: DriveTuning) -> None:
    """Above the diagonal e_min exceeds e_max: the grid has no cost there, and only there."""
    table = tuned.tables[1]
    first, second = table.grid_axes
    costs = np.array([cost is None for cost in table.grid_costs]).reshape(table.study.grid)
    np.testing.assert_array_equal(costs, first[:, None] <= second[None, :])


def test_rows_show_stated_and_own_figures(tuned: DriveTuning) -> None:
    rows = {row.quantity: row for row in tuned.comparisons}
    row = rows["Table 1: pattern search from (200, 1.5, 0.05)"]
    assert row.stated == "1.67645 at (292.01, 1.24, 0.01)"
    assert "the printed optimum costs" in row.why
    assert sum(
        quantity.startswith("Table") and " from " in quantity for quantity in rows
    ) == 20 + len(tuned.exact)
    saved = next(row for row in tuned.comparisons if row.quantity.startswith("energy"))
    assert saved.stated == "2165 and 1845: 14.8% saved"
    assert f"{tuned.energies[0]:.0f} and {tuned.energies[1]:.0f}" in saved.ours


def test_the_papers_tables_are_in_its_layout(tuned: DriveTuning) -> None:
    assert [(table.name, len(table.rows)) for table in tuned.printed] == [
        ("Table 1", 4),
        ("Table 2", 8),
        ("Table 3", 8),
    ]
    assert tuned.printed[0].rows[0].stated == ("(292.01, 1.24, 0.01)", "1.67645")
    assert "kp 100 to 300" in tuned.printed[0].why
    assert "settling time over 3.957" in tuned.printed[0].why
    third = tuned.printed[2]
    assert third.rows[0].stated == ("(0.67, 0.4)", "8.50622, 0.51865")
    assert third.rows[0].ours[1] == ", ".join(
        f"{part:.5f}" for part in tuned.tables[2].searches[0].parts
    )
    assert "9.54322 and 10.9464 (ours " in tuned.printed[1].title
    assert "2165 psi" in third.why
    assert "(8.8531, 0.6901) and (10.02246, 0.924029) (ours (" in third.title


def test_printed_rows_agree_with_the_weights_that_are_used() -> None:
    """Table 3 prints both parts of the worse-of cost; with W1 = 216.5 their sums are Table 2's costs to 1e-3."""
    both = {(0.5, 0.25): (8.8531, 0.6901), (0.25, 0.01): (10.02246, 0.924029)}
    for second, third in zip(SETTINGS.studies[1].starts, SETTINGS.studies[2].starts, strict=True):
        energy, overshoot = both[second.at]
        assert second.cost == pytest.approx(energy + overshoot, abs=1e-3)
        assert third.cost == energy
        assert third.parts == (energy, overshoot)
        assert energy * SETTINGS.studies[1].weights["energy"] == pytest.approx(
            {0.5: 1917, 0.25: 2170}[second.at[0]], abs=1
        )


def test_the_slaves_part_in_the_energy_is_of_squared_torques(tuned: DriveTuning) -> None:
    record = tuned.cycling.records["as-written"]
    early = record.time <= record.criteria.rise_time[0]
    energy = [float((record.signal(f"drive{k}.torque")[early] ** 2).mean()) for k in (1, 2)]
    # by rectangles in place of trapezia, of some thirty samples with a kick in the first
    assert slave_share(record) == pytest.approx(energy[1] / sum(energy), rel=0.25)
    assert any(row.stated.startswith("distributed on both") for row in tuned.comparisons)


def test_random_plants_all_come_to_their_end(tuned: DriveTuning) -> None:
    assert len(tuned.scatters) == 3
    for scatter in tuned.scatters:
        assert scatter.failures == 0
        assert None not in scatter.quantiles


def test_result_has_a_plain_form_and_figures(tuned: DriveTuning) -> None:
    json.dumps(plain(tuned), allow_nan=False)
    drawn = figures(tuned)
    assert set(drawn) == {"figure-8", "figure-9", "descents", "map", "front"}
    assert len(drawn["descents"].axes) == 5
    for figure in drawn.values():
        figure.canvas.draw()
