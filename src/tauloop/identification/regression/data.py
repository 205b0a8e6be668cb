"""What identification works on: a stacked regressor, the forces measured with it, and ties between parameters."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tauloop.assembly.ports import numbers
from tauloop.errors import IdentificationError, Problem, Problems
from tauloop.identification.regression.condense import condense
from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ties(Shown):
    """Known relations between the parameters of a regressor: p = matrix r + offset.

    Legs that are equal share one unknown, and parameters that are known leave the unknowns.

    Attributes:
        matrix: (n_p, n_r).
        parameters: names of the unknowns r.
        units: their units.
        offset: known part of p (n_p,), SI; zero when not given.
    """

    matrix: np.ndarray
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    offset: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check shapes, names and numbers."""
        rows, columns = (matrix := numbers(self.matrix, "ties.matrix")).shape if np.ndim(self.matrix) == 2 else (0, 0)
        offset = np.zeros(rows) if self.offset is None else numbers(self.offset, "ties.offset")
        problems = Problems()
        if columns == 0:
            problems.add(
                "ties.matrix",
                f"has shape {np.shape(self.matrix)}",
                "give (parameters, unknowns), with at least one unknown",
            )
        else:
            problems += _names("ties.parameters", self.parameters, columns)
            problems += _count("ties.units", self.units, columns)
            if offset.shape != (rows,):
                problems.add("ties.offset", f"has shape {offset.shape}", f"give {rows} numbers")
            if not (np.isfinite(matrix).all() and np.isfinite(offset).all()):
                problems.add("ties", "holds a number that is not finite", "give finite numbers")
        IdentificationError.raise_if_any(problems)
        _freeze(self, matrix=matrix, offset=offset, parameters=tuple(self.parameters), units=tuple(self.units))

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Parameters p (n_p,) from the unknowns r (n_r,)."""
        parameters: np.ndarray = self.matrix @ unknowns + self.offset
        return parameters

    def without(self, known: Mapping[str, float]) -> Ties:
        """With some of the unknowns known, by name, SI."""
        left = [k for k, name in enumerate(self.parameters) if name not in known]
        return Ties(
            matrix=self.matrix[:, left],
            parameters=tuple(self.parameters[k] for k in left),
            units=tuple(self.units[k] for k in left),
            offset=self.expand(np.array([known.get(name, 0.0) for name in self.parameters])),
        )


def ties(
    parameters: Sequence[str],
    units: Sequence[str],
    *,
    equal: Mapping[str, Sequence[str]] | None = None,
    known: Mapping[str, float] | None = None,
) -> Ties:
    """Ties by name: groups of equal parameters become one unknown, and known ones leave the unknowns.

    Args:
        parameters, units: names and units of the regressor's columns.
        equal: new name -> names of the parameters that are equal.
        known: name -> value, SI.

    Raises:
        IdentificationError: a name is unknown or used twice, units of a group differ, nothing is left unknown.
    """
    equal, known = equal or {}, known or {}
    place = {name: j for j, name in enumerate(parameters)}
    used = Counter([name for group in equal.values() for name in group] + list(known))
    problems = [
        Problem("ties", f"unknown parameter {name!r}", "name a column of the regressor")
        for name in used
        if name not in place
    ]
    problems += [
        Problem("ties", f"{name!r} is used {count} times", "use every parameter once")
        for name, count in used.items()
        if count > 1
    ]
    problems += [
        Problem(
            f"ties.{group}",
            f"equal parameters have different units: {', '.join(sorted(kinds))}",
            "tie parameters of one kind only",
        )
        for group, members in equal.items()
        if len(kinds := {units[place[name]] for name in members if name in place}) > 1
    ]
    problems += [
        Problem(f"ties.{group}", "has no members", "name the parameters that are equal")
        for group, members in equal.items()
        if not members
    ]
    IdentificationError.raise_if_any(problems)
    group_of = {name: group for group, members in equal.items() for name in members}
    unknowns = list(dict.fromkeys(group_of.get(name, name) for name in parameters if name not in known))
    column = {name: k for k, name in enumerate(unknowns)}
    matrix, offset = np.zeros((len(parameters), len(unknowns))), np.zeros(len(parameters))
    unit_of: dict[str, str] = {}
    for name, j in place.items():
        if name in known:
            offset[j] = known[name]
        else:
            matrix[j, column[group_of.get(name, name)]] = 1.0
            unit_of.setdefault(group_of.get(name, name), units[j])
    return Ties(
        matrix=matrix, offset=offset, parameters=tuple(unknowns), units=tuple(unit_of[name] for name in unknowns)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionData(Shown):
    """Samples of forces = Y p, with the names and units of both sides. The arrays are viewed, not copied.

    Attributes:
        regressor: Y (N, n_out, n_p), SI.
        forces: measured forces or torques (N, n_out), SI; columns that are not measured are not looked at.
        parameters, parameter_units: name and unit of each of the n_p columns.
        outputs, output_units: name and unit of each of the n_out rows (actuators).
        time: (N,), s, for figures only; samples are numbered without it.
        measured: (n_out,) which outputs were measured; all when not given.
        present: (N, n_out) which rows were, where several logs did not measure the same outputs; regressor and forces
            are zero in the others.
        ties: known relations between the parameters.
        logs: (N,) number of the log that each sample is of, where there are several (`merge`).
    """

    regressor: np.ndarray
    forces: np.ndarray
    parameters: tuple[str, ...]
    parameter_units: tuple[str, ...]
    outputs: tuple[str, ...]
    output_units: tuple[str, ...]
    time: np.ndarray | None = None
    measured: np.ndarray | None = None
    ties: Ties | None = None
    present: np.ndarray | None = None
    logs: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Check shapes, names and numbers.

        Raises:
            IdentificationError: with all problems.
        """
        regressor, forces = numbers(self.regressor, "regressor"), numbers(self.forces, "forces")
        if regressor.ndim != 3 or 0 in regressor.shape:
            raise IdentificationError.of(
                "regressor", f"has shape {regressor.shape}", "give (samples, outputs, parameters), none of them zero"
            )
        samples, n_outputs, n_parameters = regressor.shape
        measured = np.ones(n_outputs, dtype=bool) if self.measured is None else np.asarray(self.measured)
        time = None if self.time is None else numbers(self.time, "time")
        problems = [
            *_names("parameters", self.parameters, n_parameters),
            *_count("parameter_units", self.parameter_units, n_parameters),
            *_names("outputs", self.outputs, n_outputs),
            *_count("output_units", self.output_units, n_outputs),
            *_shape("forces", forces, (samples, n_outputs)),
            *_shape("measured", measured, (n_outputs,)),
            *(_shape("time", time, (samples,)) if time is not None else ()),
            *(_shape("logs", self.logs, (samples,)) if self.logs is not None else ()),
            *(_shape("present", self.present, (samples, n_outputs)) if self.present is not None else ()),
            *(_shape("ties.matrix", self.ties.matrix, (n_parameters, len(self.ties.parameters))) if self.ties else ()),
        ]
        if measured.dtype != bool:
            problems.append(Problem("measured", f"is of type {measured.dtype}", "give True or False per output"))
        elif not measured.any():
            problems.append(Problem("measured", "no output is measured", "measure at least one actuator's force"))
        if not problems:
            labels = (self.outputs, self.parameters)
            problems += _finite("regressor", regressor, labels)
            kept = np.flatnonzero(measured)
            problems += _finite("forces", forces[:, kept], ([self.outputs[k] for k in kept],))
            problems += _time(time) if time is not None else []
        IdentificationError.raise_if_any(problems)
        _freeze(
            self,
            regressor=regressor,
            forces=forces,
            time=time,
            measured=measured,
            parameters=tuple(self.parameters),
            parameter_units=tuple(self.parameter_units),
            outputs=tuple(self.outputs),
            output_units=tuple(self.output_units),
        )

    def __len__(self) -> int:
        return len(self.regressor)

    @property
    def kept(self) -> np.ndarray:
        """Numbers of the measured outputs."""
        return np.arange(len(self.outputs)) if self.measured is None else np.flatnonzero(self.measured)

    @property
    def counts(self) -> np.ndarray:
        """Number of samples (n_kept,) of every measured output."""
        kept = self.kept
        return np.full(len(kept), len(self)) if self.present is None else self.present[:, kept].sum(axis=0)

    def rows(self, output: int) -> np.ndarray:
        """Numbers of the samples of an output that were measured."""
        return np.arange(len(self)) if self.present is None else np.flatnonzero(self.present[:, output])

    @property
    def relations(self) -> Ties:
        """The ties; without any, those of parameters that are the unknowns themselves."""
        matrix = np.eye(len(self.parameters))
        return self.ties or Ties(matrix=matrix, parameters=self.parameters, units=self.parameter_units)

    def expand(self, unknowns: np.ndarray) -> np.ndarray:
        """Values (n_p,) of all columns from those of the unknowns."""
        return unknowns if self.ties is None else self.ties.expand(unknowns)

    def of_output(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Columns (N, n) of the unknowns in one output, and its forces (N,) less what is known."""
        regressor, forces = self.regressor[:, k], self.forces[:, k]
        if self.ties is None:
            return regressor, forces
        return regressor @ self.ties.matrix, forces - regressor @ np.asarray(self.ties.offset)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the parameters to identify: those of the ties where there are ties."""
        return self.ties.parameters if self.ties else self.parameters

    @property
    def unknown_units(self) -> tuple[str, ...]:
        """Units of the parameters to identify."""
        return self.ties.units if self.ties else self.parameter_units

    @cached_property
    def triangles(self) -> np.ndarray:
        """All that least squares asks of the samples, (n_measured, n + 1, n + 1) for n unknowns (see `condense`)."""
        factors = condense(self)
        factors.flags.writeable = False
        return factors

    def part(self, samples: slice | np.ndarray) -> RegressionData:
        """Some of the samples; those of a slice are views."""
        return dataclasses.replace(
            self,
            regressor=self.regressor[samples],
            forces=self.forces[samples],
            time=None if self.time is None else self.time[samples],
            present=None if self.present is None else self.present[samples],
            logs=None if self.logs is None else self.logs[samples],
        )


def split(data: RegressionData, share: float = 0.7) -> tuple[RegressionData, RegressionData]:
    """The first `share` of the samples for training, and the rest to judge by (held out).

    Raises:
        IdentificationError: one of the parts would be empty.
    """
    cut = round(share * len(data)) if np.isfinite(share) else 0
    if not 0 < cut < len(data):
        raise IdentificationError.of(
            "share",
            f"{share:g} of {len(data)} samples leaves one part without samples",
            "choose a share between 0 and 1, such as 0.7",
        )
    return data.part(slice(None, cut)), data.part(slice(cut, None))


def _freeze(owner: object, **values: object) -> None:
    """Set fields of a frozen object while it is being built; arrays become views that cannot be written."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(owner, name, value)


def _names(where: str, names: Sequence[str], count: int) -> list[Problem]:
    twice = [name for name, times in Counter(names).items() if times > 1]
    problems = _count(where, names, count)
    if twice:
        problems.append(Problem(where, f"named twice: {', '.join(twice[:10])}", "give every one its own name"))
    return problems


def _count(where: str, items: Sequence[str], count: int) -> list[Problem]:
    if not isinstance(items, str) and len(items) == count:
        return []
    what = "is one text" if isinstance(items, str) else f"has {len(items)} entries"
    return [Problem(where, what, f"give {count}, as many as the regressor has")]


def _shape(where: str, array: np.ndarray, shape: tuple[int, ...]) -> list[Problem]:
    if array.shape == shape:
        return []
    return [Problem(where, f"has shape {array.shape}", f"give {shape} to suit the regressor")]


def _time(time: np.ndarray) -> list[Problem]:
    problems = _finite("time", time, ())
    steps = np.diff(time)
    if not problems and np.any(steps <= 0.0):
        sample = int(np.argmax(steps <= 0.0)) + 1
        what = f"does not increase at sample {sample}: {time[sample - 1]:.9g} s, then {time[sample]:.9g} s"
        problems.append(Problem("time", what, "give the samples in order of time"))
    return problems


def _finite(where: str, array: np.ndarray, labels: tuple[Sequence[str], ...]) -> list[Problem]:
    """A problem where numbers are not finite: how many, and the first of them by sample and names."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return []
    bad = np.argwhere(~np.isfinite(array))
    if not len(bad):
        return []
    sample, *rest = bad[0]
    place = "".join(f", {names[k]}" for names, k in zip(labels, rest, strict=True))
    return [
        Problem(
            where,
            f"{len(bad)} of {array.size} numbers are not finite, the first at sample {sample}{place}",
            "repair or leave out these samples",
        )
    ]
