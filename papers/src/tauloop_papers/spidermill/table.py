"""Identification with a reduced model as comparisons, and as a list of choices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tauloop.identification import LinkParameter
from tauloop_papers.reproduction import Comparison, PrintedRow, PrintedTable, squared
from tauloop_papers.spidermill.models import Fit
from tauloop_papers.spidermill.results import Findings
from tauloop_papers.spidermill.settings import PrintedErrors, ReducedSettings


def comparisons(settings: ReducedSettings, findings: Findings) -> tuple[Comparison, ...]:
    """Return the comparisons of stated and our values."""
    return (
        *_errors(settings, findings, findings.identification, settings.stated.identification),
        *_errors(settings, findings, findings.verification, settings.stated.verification),
        *_causes(settings, findings),
        *_minimal(settings, findings),
        *_values(settings, findings),
        *_read_out(settings, findings),
        _condition(settings, findings),
    )


def _errors(
    settings: ReducedSettings, findings: Findings, fit: Fit, printed: PrintedErrors
) -> list[Comparison]:
    before, after = 100 * fit.relative(fit.before), 100 * fit.relative(fit.after)
    rms = [100 * fit.rms(predicted) for predicted in (fit.before, fit.after)]
    rows = []
    for i, (actuator, side) in enumerate(zip(findings.actuators, settings.actuators, strict=True)):
        counts = fit.counted[:, i].mean()
        least = fit.cuts[i] >= printed.cut(i)
        rows.append(
            Comparison(
                quantity=f"{fit.trajectory.name} trajectory, {side}: mean |error| / |force|, before -> after",
                unit="%",
                stated=f"{printed.before[i]:.2f} -> {printed.after[i]:.2f}, cut by {printed.cut(i):.1%} "
                f"({settings.stated.by})",
                ours=f"{before[i]:.2f} -> {after[i]:.3g}, cut by {fit.cuts[i]:.1%}",
                why=f"{counts:.0%} of the samples count (force at least {settings.least_force:.0%} of the largest); "
                f"before, the error follows from the masses of the {settings.parts} and the motion, both chosen; cut "
                f"{'more' if least else 'less'} than in print, since a rigid planar plant has fewer effects that four "
                "parameters cannot represent",
            )
        )
        rows.append(
            Comparison(
                quantity=f"{fit.trajectory.name} trajectory, {side} ({actuator}): RMS of the error over the largest "
                "force",
                unit="%",
                ours=f"{rms[0][i]:.2f} -> {rms[1][i]:.3g}",
                why=f"all samples; largest force {np.abs(fit.measured[:, i]).max():.0f} N",
            )
        )
    return rows


def _causes(settings: ReducedSettings, findings: Findings) -> list[Comparison]:
    growth = findings.growth
    stated = settings.stated.verification
    offsets = ", ".join(f"{1e3 * size:g}" for size in growth.sizes)
    left = ", ".join(f"{100 * error.mean():.3g}" for error in growth.after_by_size)
    factors = ", ".join(f"{factor:g}" for factor in growth.factors)
    before = ", ".join(f"{100 * error.mean():.2g}" for error in growth.before_by_factor)
    after = ", ".join(f"{100 * error.mean():.1g}" for error in growth.after_by_factor)
    masses = _reached(
        growth.factors, 100 * growth.before_by_factor.mean(axis=1), float(np.mean(stated.before))
    )
    sizes = _reached(
        1e3 * growth.sizes, 100 * growth.after_by_size.mean(axis=1), float(np.mean(stated.after))
    )
    return [
        Comparison(
            quantity=f"verification, mean of both, contact on the axes, masses of the {settings.parts} times "
            f"{factors}: before",
            unit="%",
            stated=f"{np.mean(stated.before):.2f}",
            ours=before,
            why=f"as in print at {masses} times the masses of the machine file; after estimation {after} % is left",
        ),
        Comparison(
            quantity=f"verification, mean of both, contact off the axes by {offsets} mm: after",
            unit="%",
            stated=f"{np.mean(stated.after):.2f}",
            ours=left,
            why=f"as in print at {sizes} mm; the paper considers the offset marginal, so most of its remaining error "
            "must have other causes, which a rigid planar plant does not have",
        ),
        Comparison(
            quantity=f"model against the plant without masses of the {settings.parts} and offset, share of the "
            "largest force",
            ours=f"{growth.bare:.1e}",
            why=settings.expected,
        ),
    ]


def _reached(x: np.ndarray, errors: np.ndarray, wanted: float) -> str:
    """Return where errors that grow with x reach a value."""
    return f"over {x.max():g}" if wanted > errors.max() else f"{np.interp(wanted, errors, x):.3g}"


def _minimal(settings: ReducedSettings, findings: Findings) -> list[Comparison]:
    printed, misfit = findings.regrouped.printed, findings.regrouped.misfits
    dependent = "; ".join(
        f"column {name} = {formula}" for name, formula in printed.dependent.items()
    )
    values = printed.singular_values / printed.singular_values[0]
    stated = settings.stated.identification
    other = 100 * findings.other_errors
    return [
        Comparison(
            quantity=f"minimal parameters, of {len(settings.products)} (eq. 5)",
            stated=f"{settings.stated.minimal} (eq. 16)",
            ours=str(len(findings.regrouped.model.base)),
            why="; ".join(parameter.name for parameter in findings.regrouped.model.base),
        ),
        Comparison(
            quantity=f"the same with {settings.readings[1]}",
            ours=str(len(findings.regrouped.other.base)),
            why="; ".join(parameter.name for parameter in findings.regrouped.other.base),
        ),
        Comparison(
            quantity="rank of the columns of eq. 16",
            stated=f"{settings.stated.minimal} (taken for minimal)",
            ours=str(len(printed.base)),
            why=f"{dependent}; last two singular values over the first: {values[-2]:.2g}, {values[-1]:.1g}",
        ),
        Comparison(
            quantity=f"share of the columns that eq. 16 cannot give: {settings.readings[0]}; {settings.readings[1]}",
            ours=f"{misfit[0]:.2g}; {misfit[1]:.0e}",
            why=settings.readings_in_print,
        ),
        Comparison(
            quantity=f"mean |error| / |force| before, with {settings.readings[1]}: identification; verification",
            unit="%",
            stated=f"{_listed(stated.before)}; {_listed(settings.stated.verification.before)}",
            ours=f"{_listed(other[0])}; {_listed(other[1])}",
            why=f"with {settings.readings[0]} it is as above; the paper does not state which one the printed errors "
            "belong to",
        ),
    ]


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _values(settings: ReducedSettings, findings: Findings) -> list[Comparison]:
    rows = []
    pairs = zip(findings.regrouped.model.base, findings.regrouped.other.base, strict=True)
    for i, (parameter, other) in enumerate(pairs):
        calculated, elsewhere, printed = (
            findings.calculated[i],
            findings.elsewhere[i],
            findings.printed[i],
        )
        value = findings.estimate.values[i]
        moved = "" if other == parameter else f"; with {settings.readings[1]} {elsewhere:.4g}"
        moved += (
            f", and the printed estimate {printed / elsewhere - 1:+.0%} off that" if moved else ""
        )
        rows.append(
            Comparison(
                quantity=parameter.name,
                unit=squared(parameter.unit),
                stated=f"{printed:.4g} (Table 1, estimated, through eq. 16)",
                ours=f"{value:.4g}",
                why=f"calculated {calculated:.4g}: printed {printed / calculated - 1:+.1%}, ours "
                f"{value / calculated - 1:+.1%}{moved}",
            )
        )
    return rows


def _read_out(settings: ReducedSettings, findings: Findings) -> list[Comparison]:
    """Return the comparisons of Table 1's five values: one given value determines the others."""
    read, drawn, known = findings.read_out, settings.drawn, ", ".join(settings.known)
    (family,) = read.unstated.families
    confidence = read.unstated.provenance.options["confidence"]
    rows = [
        Comparison(
            quantity=f"Newton-Euler equations, {stage}",
            stated=stated,
            ours=f"{equations} ({links} links)",
            why="counted by reduce on the machine in space, without its ball screws",
        )
        for (stage, links, equations), stated in zip(
            read.equations, ("102", "33", "12"), strict=True
        )
    ]
    rows += [
        Comparison(
            quantity=f"{parameter.name}, with {known} known, and {drawn} from the drawing",
            unit=squared(parameter.unit),
            stated=f"{settings.stated.estimated[parameter.name]:g}",
            ours=f"{parameter.value:.4g} ± {parameter.deviation:.1g}{_without(read.unstated[parameter.name], drawn)}",
            why=f"determined without {drawn} too"
            if parameter.name not in family.members
            else f"the interval holds all links that can exist, at {confidence:.0%}",
        )
        for parameter in read.stated.parameters
    ]
    free = read.unstated[drawn]
    rows.append(
        Comparison(
            quantity=f"{drawn} without the drawing: {', '.join(family.members)} are one family",
            unit=squared(free.unit),
            stated=f"{settings.stated.estimated[drawn]:g}",
            ours=f"{free.lower:.4g} to {free.upper:.4g}",
            why="no force determines it, but links that can exist bound it; eq. 16 only seems to determine it, by "
            "its dependent column",
        )
    )
    for k, mass in enumerate(read.masses):
        member = ", ".join(
            f"{name} {values[k]:.4g}" for name, values in read.printed.items() if name != drawn
        )
        rows.append(
            Comparison(
                quantity=f"the printed estimates with {drawn} = {mass:g} kg, by eq. 16",
                stated=", ".join(
                    f"{name} {value:.4g}" for name, value in settings.stated.estimated.items()
                )
                if mass == settings.stated.estimated[drawn]
                else "",
                ours=member,
                why=f"the same forces: all {len(read.masses)} differ by {read.change:.0e} of the largest",
            )
        )
    return rows


def _without(parameter: LinkParameter, drawn: str) -> str:
    return (
        ""
        if parameter.value is not None
        else f"; without {drawn} {parameter.lower:.4g} to {parameter.upper:.4g}"
    )


def printed_tables(settings: ReducedSettings, findings: Findings) -> tuple[PrintedTable, ...]:
    """Return Tables 1 and 2 in the paper's layout."""
    stated, read = settings.stated, findings.read_out
    machine = dict(read.unstated.known) | {
        parameter.name: (parameter.file or 0.0, 0.0) for parameter in read.unstated.parameters
    }
    names = ("m1", "m2", "m3", "m4", "d_c1", "d_c3", "I_c1", "I_c3")
    digits = {name: 3 if name.startswith("d") else 4 for name in names}
    units = {parameter.name: parameter.unit for parameter in read.unstated.parameters} | {
        "m1": "kg",
        "m3": "kg",
        "d_c1": "m",
    }
    estimated = {parameter.name: parameter.value for parameter in read.stated.parameters}
    first = [
        PrintedRow(
            name=f"{name} [{squared(units[name])}]",
            stated=(
                f"{machine[name][0]:.{digits[name]}f}",
                f"{stated.estimated[name]:.{digits[name]}f}" if name in stated.estimated else "",
            ),
            ours=(
                f"{machine[name][0]:.{digits[name]}f}",
                f"{estimated[name]:.{digits[name]}f}" if name in estimated else "",
            ),
        )
        for name in names
    ]
    cases = (("calculated", "before"), ("estimated", "after"))
    pairs = (
        (findings.identification, stated.identification),
        (findings.verification, stated.verification),
    )
    second = []
    for word, which in cases:
        for i, side in enumerate(settings.actuators):
            stated_cells = [f"{getattr(printed, which)[i]:.2f} %" for _, printed in pairs]
            our_errors = [100 * fit.relative(getattr(fit, which))[i] for fit, _ in pairs]
            second.append(
                PrintedRow(
                    name=f"{word} {side}",
                    stated=tuple(stated_cells),
                    ours=tuple(f"{error:.2f} %" for error in our_errors),
                )
            )
    return (
        PrintedTable(
            name="Table 1",
            title="MSC.ADAMS parameters and estimated parameters",
            columns=("parameter", "MSC.ADAMS parameters", "estimated parameters"),
            rows=tuple(first),
            why=f"Four base parameters cannot determine five values. Ours are with {settings.drawn} from the "
            "drawing, so "
            "that is not estimated; the paper's came through a dependent column. The paper prints kg m for inertias.",
        ),
        PrintedTable(
            name="Table 2",
            title="average relative errors of the spindle forces",
            columns=("", "identification", "verification"),
            rows=tuple(second),
            why=f"Ours omit samples under {settings.least_force:.0%} of the largest force. The paper's spatial "
            "plant has more effects that four parameters cannot represent.",
        ),
    )


def _condition(settings: ReducedSettings, findings: Findings) -> Comparison:
    conditions, random = findings.excited.conditions, findings.excited.search.random
    names, units = findings.excited.search.outputs
    return Comparison(
        quantity=f"condition number, n_f = {settings.harmonics}, period {settings.period:g} s",
        stated=f"{settings.stated.condition:g}",
        ours=f"{conditions.si:.3g} in SI units, {conditions.unit_norm:.3g} with unit-norm columns",
        why="not comparable: eq. 16 has a dependent column, and units, output and limits are not printed; ours: "
        f"{len(findings.calculated)} columns, torques at {' and '.join(names)} in {units[0]}, limits below (best of "
        f"{random.tried} random series {random.best_si:.3g})",
    )


def choices(settings: ReducedSettings, findings: Findings) -> tuple[str, ...]:
    """Return our choices that the paper leaves open."""
    offsets = ", ".join(
        f"{name} {1e3 * float(np.linalg.norm(offset)):g} mm"
        for name, offset in settings.contact_offset.items()
    )
    limits = ", ".join(
        f"{limit.name} {limit.lower:.4g} to {limit.upper:.4g} {limit.unit}"
        for limit in findings.excited.search.limits
        if limit.lower is not None and limit.upper is not None and limit.name.startswith("position")
    )
    used = []
    for fit in (findings.identification, findings.verification):
        ranges = np.degrees(np.ptp(fit.trajectory.joints, axis=0))
        used.append(" and ".join(f"{angle:.1f}" for angle in ranges))
    return (
        f"plant: {settings.machine} with masses of its {settings.parts} (its file states our choices), and with the "
        f"contact points off the cranks' axes: {offsets}; no friction, no noise, as in the paper's simulation",
        f"reduced model: exact except for massless {', '.join(settings.massless)} and contact points on the axes; "
        f"{settings.readings[0]}; {settings.readings_in_print}; Table 1 before identification",
        f"active joints {', '.join(settings.joints)}: at most ±{settings.stroke:g} rad from the reference pose, "
        f"{settings.speed:g} rad/s, {settings.acceleration:g} rad/s²; the machine file's limits: {limits}",
        f"identification: condition number in SI units of the {len(findings.calculated)} parameters represented by "
        f"{', '.join(settings.representatives)}, optimized from {settings.starts} start(s) out of {settings.random} "
        f"random series, seed {settings.seed}; its range is {used[0]} deg",
        f"verification: of {settings.random} further random series under the same limits the one with the largest "
        f"accelerations (RMS); its range is {used[1]} deg",
        f"both: one period at {settings.frequency:g} Hz, starting and ending at rest; joint angles and their "
        "derivatives exact, forces of all actuators, ordinary least squares",
        f"the printed estimates: {', '.join(f'{k} = {v:g}' for k, v in settings.stated.estimated.items())}, the rest "
        "the machine's",
    )
