"""A tuning experiment as comparisons, and as a list of choices."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.drives import DETERMINED, Axis, ParetoFront, PlantFit
from tauloop_papers.dual_motor.family import BARS, SUM_BAR
from tauloop_papers.dual_motor.results import Cycling, Scatter, Search, Table, slave_share
from tauloop_papers.dual_motor.settings import DriveSettings, Study
from tauloop_papers.reproduction import Comparison, PrintedRow, PrintedTable

#: Relative excess over the best known cost above which a search is called stuck.
STUCK = 0.01
UNITS = {"rise_time": "s", "settling_time": "s", "overshoot": "m", "energy": "N² m² s", "cost": ""}
#: The common reason for different costs.
OTHER_PLANT = "the paper's plant is not known, ours is inferred"
#: The weight of the energy, which is not as printed.
WEIGHT_MEANT = (
    "the weight of the energy is printed as W1 = 2165 psi with psi = 10, with which no printed cost agrees; with "
    "2165 / psi = 216.5 all do"
)
METHOD = {
    "pattern search": "Pattern Search",
    "SQP": "SQP",
    "simplex": "Simplex",
    "genetic": "Genetic Algorithm",
}


def _point(values: Sequence[float], form: str = ".3g") -> str:
    return "(" + ", ".join(f"{value:{form}}" for value in values) + ")"


def _searched(study: Study) -> str:
    """Return bounds and weights of a study, as printed except for one."""
    bounds = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in study.bounds.items())
    parts = ", ".join(
        f"{name.replace('_', ' ')} over {value:g}" for name, value in study.weights.items()
    )
    meant = f"; {WEIGHT_MEANT}" if "energy" in study.weights else ""
    return f"as printed: bounds {bounds}; the cost consists of {parts}{meant}"


def printed_tables(tables: Sequence[Table]) -> tuple[PrintedTable, ...]:
    """Return the paper's tables in its layout."""
    first, *others = tables
    return (_first_table(first), *(_switching_table(table) for table in others))


def _first_table(table: Table) -> PrintedTable:
    """Return Table 1 in the paper's layout."""
    rows = []
    for search in table.searches:
        cost = f"{search.start.printed[search.method].cost:.5f}"
        rows.append(_printed_row(METHOD[search.method], search, cost))
    return PrintedTable(
        name="Table 1",
        title="optimization of controller parameters; start value of the cost "
        f"{table.study.starts[0].cost:g} (ours {table.searches[0].start_cost:.6g})",
        columns=("Optimization method", "Optimal values [K_p, T_i, T_d]", "Optimal value f"),
        rows=tuple(rows),
        why=f"{OTHER_PLANT}; {_searched(table.study)}",
    )


def _switching_table(table: Table) -> PrintedTable:
    """Return Table 2 or 3 in the paper's layout."""
    equation, meaning = "(3), the worse of both", "; both parts, the larger of which is the cost"
    if table.study.combine == "sum":
        equation, meaning = "(2), energy and overshoot added", ""
    rows = []
    for search in table.searches:
        name = f"{_point(search.start.at)}, {METHOD[search.method]}"
        rows.append(_printed_row(name, search, _cost(search)))
    return PrintedTable(
        name=table.study.name,
        title=f"optimization of switching parameters with the cost of eq. {equation}; start values "
        f"of the cost {_starts(table)}",
        columns=(
            "Start values, optimization method",
            "Optimal values [e_max, e_min]",
            "Optimal value",
        ),
        rows=tuple(rows),
        why=f"{OTHER_PLANT}; {_searched(table.study)}{meaning}",
    )


def _starts(table: Table) -> str:
    """Return printed and our costs at the starts, as text; for Table 3 both parts."""
    first = {search.start.at: search for search in table.searches}.values()
    stated = " and ".join(
        _joined(search.start.parts or (search.start.cost,), ".7g") for search in first
    )
    ours = " and ".join(
        _joined(search.start_parts if search.start.parts else (search.start_cost,), ".6g")
        for search in first
    )
    return f"{stated} (ours {ours})"


def _joined(parts: Sequence[float], form: str) -> str:
    return _point(parts, form) if len(parts) > 1 else f"{parts[0]:{form}}"


def _cost(search: Search) -> str:
    printed = search.start.printed[search.method]
    return ", ".join(f"{part:.5f}" for part in printed.parts or (printed.cost,))


def _printed_row(name: str, search: Search, cost: str) -> PrintedRow:
    printed = search.start.printed[search.method]
    ours = ", ".join(f"{part:.5f}" for part in (search.parts if printed.parts else (search.cost,)))
    return PrintedRow(
        name=name, stated=(_point(printed.best, ".6g"), cost), ours=(_point(search.best), ours)
    )


def comparisons(
    settings: DriveSettings,
    plant: PlantFit | None,
    cycling: Cycling,
    tables: tuple[Table, ...],
    energies: tuple[float, float],
    front: ParetoFront,
    scatters: tuple[Scatter, ...],
    exact: tuple[Search, ...],
) -> tuple[Comparison, ...]:
    """Return the comparisons of stated and our values."""
    rows = [*_cycle_rows(cycling), *([] if plant is None else plant_rows(plant))]
    for table in tables:
        rows += _table_rows(table)
    rows += [_exact_row(table, search) for table, search in zip(tables, exact, strict=True)]
    before, after = settings.before, settings.after
    rows.append(
        Comparison(
            quantity=f"energy of a step at {_point(before.best)} and {_point(after.best)}",
            unit="N² m² s",
            stated=f"{before.cost:.0f} and {after.cost:.0f}: {1 - after.cost / before.cost:.1%} saved",
            ours=f"{energies[0]:.0f} and {energies[1]:.0f}: {1 - energies[1] / energies[0]:.1%} saved",
            why=OTHER_PLANT,
        )
    )
    energy, overshoot = front.criteria.T
    rows.append(
        Comparison(
            quantity="Pareto front: least energy, and least overshoot",
            unit="N² m² s, mm",
            ours=f"{energy[0]:.0f} with {overshoot[0] * 1e3:.3f}; {energy[-1]:.0f} with {overshoot[-1] * 1e3:.3f}",
            why=f"{len(energy)} compromises by NSGA-II; the paper has none",
        )
    )
    rows += [_scatter_row(scatter) for scatter in scatters]
    return tuple(rows)


def plant_rows(plant: PlantFit) -> list[Comparison]:
    """Return comparisons of the plant's values with the printed ones, and of open directions."""
    rows = [
        Comparison(
            quantity=f"plant, {row}: {name.replace('_', ' ')}",
            unit=UNITS[name],
            stated=f"{printed:.5g}",
            ours=f"{ours:.5g}",
            why=f"{ours / printed - 1.0:+.1%}, {verdict(name, row, printed, ours)}",
        )
        for row, name, printed, ours, _ in plant.rows
    ]
    met = sum(row.why.endswith("within its bar") for row in rows)
    open_ones = len(plant.undetermined)
    return [
        *rows,
        Comparison(
            quantity="plant: rows within their bars",
            ours=f"{met} of {len(rows)}",
            why="1 % of times, energies and sums of Table 2, 10 % of overshoots and costs of Table 1",
        ),
        Comparison(
            quantity="plant: directions that the rows leave open",
            ours=f"{open_ones} of {len(plant.sensitivities)}",
            why=f"values change by less than {DETERMINED:g} bar over the ranges; the least determined change by "
            + ", ".join(f"{value:.2g}" for value in plant.sensitivities[-3:]),
        ),
    ]


def bar_of(name: str, row: str) -> float:
    """Return the bar of a printed value, as a share."""
    return SUM_BAR if row.startswith("Table 2") else BARS[name]


def verdict(name: str, row: str, printed: float, ours: float) -> str:
    """Return whether a value is within its bar, as text."""
    missed = abs(ours / printed - 1.0) / bar_of(name, row)
    return "within its bar" if missed <= 1.0 else f"{missed:.1f} bars off"


def residual_rows(fits: Sequence[PlantFit]) -> list[Comparison]:
    """Return comparisons of each row with the nearest structure for this row alone."""
    rows = []
    for k, (row, name, printed, _, _) in enumerate(fits[0].rows):
        # overshoots in other readings of the unit differ: shares of the printed value are compared
        shares = [fit.rows[k][3] / fit.rows[k][2] - 1.0 for fit in fits]
        nearest = min(shares, key=abs)
        rows.append(
            Comparison(
                quantity=f"best residual, {row}: {name.replace('_', ' ')}",
                unit="%",
                ours=f"{100 * nearest:+.2g}",
                why=f"of {len(fits)} structures; "
                + verdict(name, row, printed, printed * (1.0 + nearest)),
            )
        )
    return rows


def _cycle_rows(cycling: Cycling) -> list[Comparison]:
    single, both = cycling.swings["one"], cycling.swings["as-written"]
    return [
        Comparison(
            quantity=f"Figure 8: swing of the cart, last quarter of {cycling.duration:g} s, one motor",
            unit="mm",
            stated="limit cycles may occur",
            ours=f"{1e3 * single:.2g}",
            why="the same plant without its slave, whose friction is also removed; otherwise unchanged, play "
            f"{1e3 * cycling.gap:.3g} mm",
        ),
        Comparison(
            quantity="the same, two motors",
            unit="mm",
            stated="no limit cycles occur",
            ours=f"{1e3 * both:.1g}",
            why="gains of the switching study, switching (0.25, 0.01)",
        ),
        Comparison(
            quantity="Figure 8: overshoot of the step with two motors, share of the step",
            unit="%",
            stated="a smooth response",
            ours=f"{100 * cycling.overshoot:.2f}",
            why="gains of the switching study, switching (0.25, 0.01)",
        ),
        Comparison(
            quantity="Figure 8: part of the slave in the energy up to the rise time",
            unit="%",
            stated="distributed on both motors in the beginning",
            ours=f"{100 * slave_share(cycling.records['as-written']):.2g}",
            why="the slave's share of the torque is one of the fitted values",
        ),
    ]


def _table_rows(table: Table) -> list[Comparison]:
    rows = []
    for start in table.study.starts:
        searches = [search for search in table.searches if search.start == start]
        rows.append(
            Comparison(
                quantity=f"{table.study.name}: cost at the start {_point(start.at)}",
                stated=_joined(start.parts or (start.cost,), ".7g"),
                ours=_joined(
                    searches[0].start_parts if start.parts else (searches[0].start_cost,), ".6g"
                ),
                why=f"{table.study.about}; {OTHER_PLANT}",
            )
        )
        rows += [_search_row(table, search) for search in searches]
    rows.append(
        Comparison(
            quantity=f"{table.study.name}: grid of {' × '.join(map(str, table.study.grid))} points",
            ours=f"{table.grid_cost:.6g} at {_point(table.grid_best)}",
            why=f"{table.minima} grid points have no better neighbor",
        )
    )
    return rows


def _search_row(table: Table, search: Search) -> Comparison:
    printed = search.start.printed[search.method]
    verdict = (
        f"stuck {search.above:.1%} above the best"
        if search.above > STUCK
        else "reaches the best within 1 %"
    )
    here = "fails here" if search.printed_here is None else f"costs {search.printed_here:.6g} here"
    return Comparison(
        quantity=f"{table.study.name}: {search.method} from {_point(search.start.at)}",
        stated=f"{printed.cost:.6g} at {_point(printed.best, '.6g')}",
        ours=f"{search.cost:.6g} at {_point(search.best)}",
        why=f"{verdict}, {search.evaluations} evaluations; the printed optimum {here}",
    )


def _exact_row(table: Table, search: Search) -> Comparison:
    same = next(row for row in table.searches if row.method == "SQP" and row.start == search.start)
    return Comparison(
        quantity=f"{table.study.name}: SQP along exact gradients from {_point(search.start.at)}",
        ours=f"{search.cost:.6g} at {_point(search.best)}",
        why=f"{search.above:.1%} above the best, {search.evaluations} evaluations and as many gradients at most; "
        f"by differences {same.cost:.6g} in {same.evaluations} (the paper has none)",
    )


def _scatter_row(scatter: Scatter) -> Comparison:
    low, middle, high = (
        f"{value:.4g}" if value is not None else "fails" for value in scatter.quantiles
    )
    return Comparison(
        quantity=f"cost of Table 2 over random plants, {scatter.name} {_point(scatter.at)}",
        ours=f"{middle} ({low} to {high})",
        why=f"median, 5 % and 95 %; {scatter.failures:.0%} of the simulations are given up or diverge"
        + (", which makes these values doubtful" if scatter.failures > 0 else ""),
    )


def choices(settings: DriveSettings, axis: Axis) -> tuple[str, ...]:
    """Return our choices that the paper leaves open."""
    scatter = ", ".join(f"{name} {share:.0%}" for name, share in settings.scatter.items())
    return (
        f"the plant: drive line {axis.line.name}; the paper prints none of its values",
        *settings.choices,
        "step lengths, sizes of the simplex and of the generations of all methods: Tauloop's defaults",
        f"scatter of the random plants: {scatter}",
    )
