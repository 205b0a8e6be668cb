"""Options of `identify`: how logs are prepared, what is known of the machine, how it is fitted, what is asked beside.

Every class checks its own fields when it is made. Quantities are numbers in SI units, or texts with
a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tauloop.common.errors import InputError, Problems
from tauloop.common.extensions import Offered
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.result import plain
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.regression.from_log import OUTPUTS
from tauloop.logs.velocities import SOURCES
from tauloop.mechanism.description import units
from tauloop.mechanism.description.quantities import (
    pairs_reader,
)

if TYPE_CHECKING:
    import xarray as xr

    from tauloop.identification.preparation.measured_log import MeasuredLog
    from tauloop.logs import Signals

    #: What a log may be given as: a file (a table, or a YAML that describes a recording), or data
    #: in memory.
    LogSource: TypeAlias = str | Path | xr.Dataset | Signals | MeasuredLog
else:

    class _LogType(type):
        """Types of logs by their names: xarray is slow to import."""

        def __instancecheck__(cls, value: object) -> bool:
            names = {kind.__name__ for kind in type(value).__mro__}
            return isinstance(value, str | PathLike) or not names.isdisjoint(cls.KINDS)

    class LogSource(metaclass=_LogType):
        """What a log may be given as, to be checked when a function is called."""

        KINDS = ("Dataset", "Signals", "MeasuredLog")
        in_words = "a path, an xarray.Dataset, Signals or a MeasuredLog"


#: What makes them is in `chosen`: some need other options, or the logs.
ESTIMATORS = Offered(
    "tauloop.estimators", Estimator, dict.fromkeys(("ols", "wls", "irls", "tls", "iv"))
)
PARAMETERS = ("standard", "file")
ERRORS = ("independent", "autocorrelated", "decimated", "blocks", "logs")
#: Fields of `PreparationOptions` that take the place of those of the same name of each log's own
#: preparation.
STATED = ("velocity", "cutoff", "order", "standstill", "trim", "decimation")


def _named(
    where: str, example: str, metavar: str, *, bare: bool = False, flag: str | None = None
) -> Any:
    """Return a field of values by name that the command line may repeat; with `bare`, names alone."""
    read = pairs_reader(where, example, bare=bare)
    return option(factory=dict, read=read, repeated=True, metavar=metavar, flag=flag)


def refuse_beside(
    problems: Problems, options: Mapping[str, Any], beside: Mapping[str, Any]
) -> None:
    """Note each option that is there together with what gives it no meaning, and what that is."""
    for where, value in options.items():
        for other, is_there in beside.items():
            if value and is_there:
                problems.add(where, f"has no meaning beside {other}", "leave one of them out")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationOptions(Options):
    """What is done to all logs, over what their recordings say; None leaves it to these.

    Attributes:
        velocity: velocities from positions, measured, or fused of both; chosen by validation unless
            said here or in the recording.
        cutoff: cut-off frequency of a zero-phase low-pass of positions and measured velocities,
            such as 40Hz. Without it, and without a recording that states it, validation chooses
            cut-off, order, standstill, decimation and laws of friction.
        order: order of the Butterworth low-pass.
        standstill: share of an actuator's largest speed below which it counts as at rest.
        trim: number of samples cut off at each end.
        decimation: keep every n-th sample after a zero-phase filter.
        scan_cutoffs: cut-offs to try, Hz, such as 20,50,100: what each gives, how far parameters
            move, and the choice, for all channels and then for each alone.
        scan_orders: orders to try with them; 1, 2 and 4 without.
        scan_standstills: values of the standstill to try with them, such as 1e-6,1e-3.
        period: period of the motion, such as 10s: average over its periods, weight forces by the
            noise that they show, and differentiate by Fourier series instead of a filter; needs the
            highest frequency.
        highest: with a period: highest frequency of the motion, Hz.
        hold: channels or axes that stand still, such as 'motor_4=30 deg', and are not in the logs;
            without a value where the reference pose has them.
        fill_gaps: largest number of missing samples in a row that are interpolated; they are
            counted.
        resample: take samples at even times where they were stamped at uneven ones; positions
            decide whether stamps are true or late.

    Examples:
        >>> import tauloop as tl
        >>> tl.PreparationOptions(cutoff="50 Hz").cutoff
        50.0
    """

    velocity: str | None = option(None, choices=SOURCES, flag="--velocity-source")
    cutoff: float | None = option(None, metavar="FREQUENCY", unit=units.FREQUENCY)
    order: int | None = None
    standstill: float | None = None
    trim: int | None = None
    decimation: int | None = None
    scan_cutoffs: tuple[float, ...] = option((), metavar="FREQUENCY,...", unit=units.FREQUENCY)
    scan_orders: tuple[int, ...] = (1, 2, 4)
    scan_standstills: tuple[float, ...] = ()
    period: float | None = option(None, metavar="TIME", unit=units.TIME)
    highest: float | None = option(
        None, flag="--max-frequency", metavar="FREQUENCY", unit=units.FREQUENCY
    )
    hold: Mapping[str, float | str] = _named("hold", "elbow=0.2", "NAME=VALUE", bare=True)
    fill_gaps: int | None = option(None, least=1)
    resample: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Note what has no meaning beside a period."""
        if self.scan_standstills and not self.scan_cutoffs:
            problems.add("scan_standstills", "is given alone", "add scan_cutoffs")
        if (self.period is None) != (self.highest is None):
            problems.add(
                "period", "one of period and highest is given without the other", "give both"
            )
        names = [*(name for name in STATED if name not in ("trim", "standstill")), "scan_cutoffs"]
        values = {name: getattr(self, name) for name in names}
        # a number of NumPy cannot be compared with a tuple
        absent = [
            name
            for name, value in values.items()
            if value is None or (isinstance(value, tuple) and not value)
        ]
        beside = [name for name in names if name not in absent]
        if beside and (self.period, self.highest) != (None, None):
            what = "whole periods are averaged and cut off at the highest frequency without a filter, and their "
            what += f"samples are few: {', '.join(beside)} has no meaning"
            problems.add("period", what, "leave it out, or filter without a period")

    @property
    def stated(self) -> dict[str, Any]:
        """Parts of a `Preparation` that win over each log's own."""
        return {name: value for name in STATED if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermOptions(Options):
    """What is known of the forces' terms, and which stand beside those of the machine file.

    Attributes:
        known: parameters that are known, such as 'tip_mass=0.3 kg', SI without a unit; a spring's
            rest as 'slide.rest=0.1 m'.
        payload: LOG=BODY: in this log that body carries an unknown payload (payload.m, payload.mcx
            ...).
        asymmetric: friction of this joint, rod or motor differs from one direction to the other.
        stribeck: NAME=SPEED: friction of it is larger at speeds below this one, such as 'tip=0.2
            rad/s'.
        presliding: friction of this joint, rod or motor turns round over some way after a reversal:
            NAME, whose way validation finds, or NAME=WAY, such as 'elbow=0.01 rad'.
        gains: forces are known up to a factor for each drive; known parameters set the scale.

    Examples:
        >>> import tauloop as tl
        >>> tl.TermOptions(known={"tip_mass": "0.3 kg"}, gains=True).known
        {'tip_mass': '0.3 kg'}
    """

    known: Mapping[str, float | str] = _named("known", "'tip_mass=0.3 kg'", "NAME=VALUE")
    payload: Mapping[str, str] = _named(
        "payload", "loaded.csv=forearm", "LOG=BODY", flag="--payload-body"
    )
    asymmetric: tuple[str, ...] = option((), metavar="NAME")
    stribeck: Mapping[str, float | str] = _named("stribeck", "'elbow=0.2 rad/s'", "NAME=SPEED")
    presliding: Mapping[str, float | str] = _named(
        "presliding", "'elbow' or 'elbow=0.01 rad'", "NAME[=WAY]", bare=True
    )
    gains: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Note names that are given twice, and payloads on several bodies."""
        bodies = sorted(set(self.payload.values()))
        for name in sorted({name for name in self.asymmetric if self.asymmetric.count(name) > 1}):
            problems.add("asymmetric", f"{name!r} is given twice", "give it once")
        if len(bodies) > 1:
            problems.add("payload", f"sits on {', '.join(bodies)}", "name one body")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationOptions(Options):
    """How a machine is identified, and judged.

    Attributes:
        data: folder of the data files that YAML files name; that of the YAML file without it.
        validation: another recording to judge by, instead of the end of each log.
        hold_out: share at the end of each log that is judged, not fitted.
        parameters: each body's own ten, or the named leaf parameters of the machine file.
        output: forces that are measured: of the actuators, or of the joints (after the
            transmission).
        estimator: least squares (ols), weighted per actuator from the residuals (wls), Huber's
            against outliers (irls), for errors of the regressor (tls, see the column error), or
            with instruments of the commanded motion (iv).
        column_error: with tls: error of the regressor's columns, as a share of them.
        commanded: with iv: recording of the commanded positions, sample by sample as the log; one
            for each log.
        disconnected: with the two-run method: run of the same motion with the structure taken off,
            one for each log. Its forces, the actuators' own, are subtracted: carts of 0 kg and
            drives without friction are fitted.
        errors: standard deviations for errors that are independent, autocorrelated (as the
            residuals show), decimated (white before the decimation), or of any kind inside blocks
            of each log, or inside logs: these two count model errors as well.
        compare_logs: also fit each of several logs by itself: which parameters move by more than
            their bars, and bars that count this error of the model.
        essential: leave out base parameters step by step until all are known to this share of their
            size, such as 0.3.
        regroup: also say the base parameters as formulas in link parameters and lengths, as
            `regroup` finds them.
        consistent: also fit all standard parameters inside physical limits, near the machine
            file's.
        within_limits: refuse poses beyond a stop of the machine file; otherwise they are reported.
        preparation: of the logs.
        terms: what is known, and what stands beside the machine file's terms.

    Examples:
        >>> import tauloop as tl
        >>> tl.IdentificationOptions(estimator="ols", hold_out=0.2).hold_out
        0.2
    """

    data: Path | None = None
    validation: LogSource | None = option(None, read=Path, metavar="LOG")
    hold_out: float = option(0.3, least=0.0, most=0.9)
    parameters: str = option("standard", choices=PARAMETERS, flag="--unknowns")
    output: str = option("actuators", choices=OUTPUTS)
    estimator: str | Estimator = option("wls", choices=ESTIMATORS)
    column_error: float = 0.01
    commanded: tuple[LogSource, ...] = option((), read=tuple, repeated=True, metavar="LOG")
    disconnected: tuple[LogSource, ...] = option((), read=tuple, repeated=True, metavar="LOG")
    errors: str | ErrorModel = option("autocorrelated", choices=ERRORS)
    compare_logs: bool = False
    essential: float | None = None
    regroup: bool = False
    consistent: bool = False
    within_limits: bool = False
    preparation: PreparationOptions = field(default_factory=PreparationOptions)
    terms: TermOptions = field(default_factory=TermOptions)

    @property
    def share(self) -> float:
        """Share of each fitted log that is fitted: all of it where another log judges."""
        return 1.0 - self.hold_out if self.validation is None else 1.0

    def _note_mismatches(self, problems: Problems) -> None:
        """Note what has no meaning beside something else."""
        terms, iv = self.terms, {"estimator iv": self.estimator == "iv"}
        if self.hold_out == 0.0 and self.validation is None:
            what = "a model that is judged only on data it was fitted to is not judged"
            problems.add("hold_out", what, "hold out a share, such as 0.3")
        if (self.estimator == "iv") != bool(self.commanded):
            what = "instruments come from the commanded motion: one is given without the other"
            problems.add(
                "commanded", what, "give both estimator iv and the commanded motion of each log"
            )
        beside = iv | {"scan_cutoffs": self.preparation.scan_cutoffs, "consistent": self.consistent}
        refuse_beside(problems, {"payload": terms.payload}, beside)
        refuse_beside(
            problems, {"gains": terms.gains}, beside | {"output joints": self.output == "joints"}
        )
        friction = {name: getattr(terms, name) for name in ("asymmetric", "stribeck", "presliding")}
        refuse_beside(problems, friction, iv | {"period": self.preparation.period is not None})
        judged = {"validation": self.validation is not None, "commanded": self.commanded}
        refuse_beside(problems, {"disconnected": self.disconnected}, judged)
        refuse_beside(
            problems, {"regroup": self.regroup}, {"parameters file": self.parameters == "file"}
        )
        refuse_beside(
            problems, {"compare_logs": self.compare_logs}, iv | {"payload": terms.payload}
        )


def texts_of(options: Any) -> dict[str, Any]:
    """What options say beyond their defaults, by the names of their fields, as a study's file would have it.

    Raises:
        InputError: an object of Python that no text stands for.
    """
    texts: dict[str, Any] = {}
    default = type(options)()
    for item in fields(options):
        value = getattr(options, item.name)
        if is_dataclass(value):
            texts |= texts_of(value)
        elif value != getattr(default, item.name):
            if isinstance(value, Mapping):
                value = [
                    name if content == "" else f"{name}={content}"
                    for name, content in value.items()
                ]
            elif isinstance(value, Path):
                value = str(value)
            try:
                texts[item.name] = plain(value)
            except ValueError:
                what = f"{type(value).__name__} is no text that a worker could be sent"
                raise InputError.of(item.name, what, "name one of Tauloop's own") from None
    return texts
