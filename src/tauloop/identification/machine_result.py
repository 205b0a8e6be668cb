"""The result of `identify`: the fit, problems of the logs, and the requested additional results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from operator import methodcaller
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, columns
from tauloop.common.errors import InputError, Problem
from tauloop.common.plain import OMITTED, in_json, json_keys, none_if_empty
from tauloop.common.records import dataclass
from tauloop.common.result import Result, Status, status_of
from tauloop.identification.estimation.log_comparison import LogComparison
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.missing_laws import MissingLaw
from tauloop.identification.friction.presliding_lengths import PreslidingChoice
from tauloop.identification.options import TermOptions
from tauloop.identification.parameters.consistency import ConsistentIdentification
from tauloop.identification.parameters.essential import EssentialParameters
from tauloop.identification.parameters.known import DriveGains
from tauloop.identification.parameters.prior import PriorComparison, runaway_masses
from tauloop.identification.parameters.write_back import (
    identified_mechanism,
    mechanism_with_estimates,
)
from tauloop.identification.preparation.channels import Channels
from tauloop.identification.preparation.choice.filter_scan import FilterScan
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regrouping.formula_values import FormulaValue
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineIdentification(Result):
    """An identification from logs; results that were not requested are None.

    Attributes:
        model: the identified machine.
        logs: names of the fitted logs.
        hold_out: fraction at the end of each log that was held out.
        identification: the fit, evaluated on held-out data.
        whole_log: the fit to all samples; None if another log is used for validation.
        data_findings: problems of the data or of the machine file.
        repairs: notes on the repairs of the logs.
        machine_file: the estimates, compared with the values in the machine file.
        log_comparison: comparison of separate fits of several logs.
        filter_scan: scan of the filters.
        presliding, presliding_notes: lengths over which friction reverses, and notes on them.
        known_forces: notes on the known forces that were subtracted.
        channels: the preparation of each channel.
        periods: number of periods of each averaged log, and noise and units of its channels.
        gains: gains of the drives.
        essential: parameters that the data determine.
        formulas: the base parameters as formulas, from the fit to all samples if there is one.
        consistent: all standard parameters, within physical limits.
        training, held_out: the fitted and the held-out data.
        not_shown: descriptions of encoder zeros, ratios and force factors that these logs do not
            determine, and that must be checked by other means.
        friction_laws: friction laws that the findings report as missing and that options can add.
        force_delays: delays of forces that the findings report, s, by output.
        late_outputs: outputs whose force is late for a reason other than friction.
        terms: known and additional terms, as given or as chosen by validation.
        motion: times (N,), s, and actuator positions (N, n) of the first log, SI.
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
    known_forces: tuple[str, ...] = field(metadata=json_keys(optional=True, summary=none_if_empty))
    channels: Channels
    periods: tuple[dict[str, Any], ...] = field(
        metadata=json_keys(optional=True, summary=none_if_empty)
    )
    gains: DriveGains | None = field(metadata=json_keys(optional=True))
    essential: EssentialParameters | None = field(metadata=json_keys(optional=True))
    formulas: tuple[FormulaValue, ...] | None = field(metadata=json_keys(optional=True))
    consistent: ConsistentIdentification | None = field(metadata=json_keys(optional=True))
    training: RegressionData = field(metadata=OMITTED)
    held_out: RegressionData = field(metadata=OMITTED)
    not_shown: tuple[str, ...] = ()
    motion: tuple[np.ndarray, np.ndarray] | None = field(default=None, metadata=OMITTED)
    friction_laws: tuple[MissingLaw, ...] = field(default=(), metadata=OMITTED)
    force_delays: Mapping[str, float] = field(default_factory=dict, metadata=OMITTED)
    late_outputs: tuple[str, ...] = field(default=(), metadata=OMITTED)
    terms: TermOptions = field(default_factory=TermOptions, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the fit's variables, the machine file's values, and the forces over `sample`."""
        fit = self.identification
        parts = (self.training, self.held_out)
        yield from fit.variables()
        yield Variable(
            name="machine_file",
            values=self.machine_file.prior,
            over=("parameter",),
            unit=fit.base.units,
        )
        names = [item.output for item in fit.training]
        units = [item.unit for item in fit.training]
        measured = np.concatenate([part.forces[:, part.kept] for part in parts])
        residual = np.concatenate([fit.residual(part) for part in parts])
        yield from columns("measured", names, units, measured, ("sample",))
        yield from columns("predicted", names, units, measured - residual, ("sample",))
        is_held_out = np.arange(len(measured)) >= len(self.training)
        yield Variable(name="held_out", values=is_held_out, over=("sample",))

    @property
    @in_json()
    def findings(self) -> tuple[Problem, ...]:
        """Problems of the data or of the machine file, and implausible masses."""
        implausible = runaway_masses(self.consistent) if self.consistent is not None else ()
        return (*self.data_findings, *implausible)

    @property
    def status(self) -> Status:
        """OK if all diagnostics are within their limits and the parameters are plausible."""
        are_plausible = len(self.findings) == len(self.data_findings)
        if self.consistent is not None and self.consistent.status is not Status.OK:
            are_plausible = False
        if not are_plausible:
            return Status.DOUBTFUL
        return status_of(self.diagnostics)

    def mechanism(self) -> Mechanism:
        """Return the identified machine.

        It has the physically consistent parameters if these were requested. Otherwise, if the
        unknowns are parameters of the machine file, it has the estimates that are nearest to the
        file's values.

        Raises:
            InputError: consistent parameters were not requested, and the unknowns are not
                parameters of the file.
        """
        source = f"identified from {', '.join(self.logs)}"
        fit = self.whole_log or self.identification
        file_parameters = set(self.model.mechanism.parameters.names)
        if self.consistent is None and file_parameters.issuperset(fit.base.parameters):
            return mechanism_with_estimates(
                self.model.mechanism, fit.base, fit.values, source=source
            )
        if self.consistent is None:
            what = (
                "a machine needs values of all parameters, but base parameters are only combinations "
                "of them"
            )
            remedy = 'request consistent parameters, or identify parameters of the file (unknowns="file")'
            raise InputError.of("consistent", what, remedy)
        return identified_mechanism(self.model, self.consistent.parameters, source=source)
