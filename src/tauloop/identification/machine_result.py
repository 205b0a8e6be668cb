"""What `identify` finds of a machine: the fit, what is wrong with logs, and whatever else was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from operator import methodcaller
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.errors import InputError, Problem
from tauloop.common.plain import OMITTED, in_json, json_keys, stated
from tauloop.common.records import dataclass
from tauloop.common.result import Result, Status, status_of
from tauloop.identification.estimation.log_comparison import LogComparison
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.missing_laws import MissingLaw
from tauloop.identification.friction.presliding import PreslidingChoice
from tauloop.identification.options import TermOptions
from tauloop.identification.parameters.consistency import ConsistentIdentification
from tauloop.identification.parameters.essential import EssentialParameters
from tauloop.identification.parameters.formula_values import FormulaValue
from tauloop.identification.parameters.known import DriveGains
from tauloop.identification.parameters.prior import PriorComparison, runaway_masses
from tauloop.identification.parameters.write_back import identified_mechanism
from tauloop.identification.preparation.channels import Channels
from tauloop.identification.preparation.filter_scan import FilterScan
from tauloop.identification.regression.data import RegressionData
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineIdentification(Result):
    """An identification from logs; what was not asked for is None.

    Attributes:
        model: the machine that was identified.
        logs: names of those that were fitted.
        hold_out: share at the end of each that was held out.
        identification: the fit, judged on held-out data.
        whole_log: the fit to all samples, where none come from another log to judge by.
        data_findings: what is wrong with the data, the machine file, or both.
        repairs: what was put into logs, in words.
        machine_file: the estimates beside the values of the machine file.
        log_comparison: several logs fitted apart.
        filter_scan: what every filter gives.
        presliding, presliding_notes: lengths over which friction turns round, and in words.
        known_forces: what was taken off the forces, in words.
        channels: how each was prepared.
        periods: of each averaged log how many there are, and noise and unit of its channels.
        gains: of the drives.
        essential: parameters that the data determine.
        formulas: the base parameters as formulas, of whole logs where these were fitted.
        consistent: all standard parameters, inside physical limits.
        training, held_out: the data that were fitted, and those that judge.
        not_shown: zeros of encoders and factors of forces that these logs do not show, in words:
            check them otherwise.
        friction_laws: that the findings ask for and the options may name.
        terms: what is known and fitted next to the machine file's terms, as given or as validation
            chose.
        motion: times (N,), s, and actuator positions (N, n) of the beginning of the first log, SI.
    """

    model: Model = field(metadata=OMITTED)
    logs: tuple[str, ...] = field(metadata=OMITTED)
    hold_out: float = field(metadata=OMITTED)
    identification: Identification = field(metadata=json_keys(flat=True))
    whole_log: Identification | None = field(metadata=json_keys(optional=True))
    data_findings: tuple[Problem, ...] = field(metadata=OMITTED)
    repairs: tuple[str, ...]
    machine_file: PriorComparison = field(metadata=json_keys(summary=methodcaller("rows")))
    log_comparison: LogComparison | None = field(metadata=json_keys(optional=True))
    filter_scan: FilterScan | None = field(metadata=json_keys(optional=True))
    presliding: PreslidingChoice | None = field(metadata=json_keys(optional=True))
    presliding_notes: tuple[str, ...] = field(metadata=OMITTED)
    known_forces: tuple[str, ...] = field(metadata=json_keys(optional=True, summary=stated))
    channels: Channels
    periods: tuple[dict[str, Any], ...] = field(metadata=json_keys(optional=True, summary=stated))
    gains: DriveGains | None = field(metadata=json_keys(optional=True))
    essential: EssentialParameters | None = field(metadata=json_keys(optional=True))
    formulas: tuple[FormulaValue, ...] | None = field(metadata=json_keys(optional=True))
    consistent: ConsistentIdentification | None = field(metadata=json_keys(optional=True))
    training: RegressionData = field(metadata=OMITTED)
    held_out: RegressionData = field(metadata=OMITTED)
    not_shown: tuple[str, ...] = ()
    motion: tuple[np.ndarray, np.ndarray] | None = field(default=None, metadata=OMITTED)
    friction_laws: tuple[MissingLaw, ...] = field(default=(), metadata=OMITTED)
    terms: TermOptions = field(default_factory=TermOptions, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Those of the fit, values of the machine file, and measured and predicted forces, by `sample`."""
        fit, prior, parts = (
            self.identification,
            self.machine_file.prior,
            (self.training, self.held_out),
        )
        yield from fit.variables()
        yield Variable(name="machine_file", values=prior, over=("parameter",), unit=fit.base.units)
        names, units = ([getattr(item, key) for item in fit.training] for key in ("output", "unit"))
        measured = np.concatenate([part.forces[:, part.kept] for part in parts])
        residual = np.concatenate([fit.residual(part) for part in parts])
        yield from columns("measured", names, units, measured, ("sample",))
        yield from columns("predicted", names, units, measured - residual, ("sample",))
        yield Variable(
            name="held_out", values=np.arange(len(measured)) >= len(self.training), over=("sample",)
        )

    @property
    @in_json()
    def findings(self) -> tuple[Problem, ...]:
        """What is wrong with the data, the machine file, or both; with masses that cannot be."""
        heavy = runaway_masses(self.consistent) if self.consistent is not None else ()
        return (*self.data_findings, *heavy)

    @property
    def status(self) -> Status:
        """OK when all diagnostics are within their limits and the parameters are sound."""
        sound = len(self.findings) == len(self.data_findings)
        if not sound or (self.consistent is not None and self.consistent.status is not Status.OK):
            return Status.DOUBTFUL
        return status_of(self.diagnostics)

    def mechanism(self) -> Mechanism:
        """The identified machine, with its physically consistent parameters.

        Raises:
            InputError: these were not asked for.
        """
        if self.consistent is None:
            what = "an identified machine needs all its parameters, and base parameters are fewer"
            raise InputError.of("consistent", what, "ask for consistent parameters")
        source = f"identified from {', '.join(self.logs)}"
        return identified_mechanism(self.model, self.consistent.parameters, source=source)
