"""Options of `identify`: preparation of logs, known parameters, estimation, additional results.

Every class checks its fields when it is created. Quantities are numbers in SI units, or texts with
a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tauloop.common.errors import InputError, Problems
from tauloop.common.extensions import Registry
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.records import dataclass
from tauloop.common.result import plain
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.regression.from_log import OUTPUTS
from tauloop.logs.velocities import SOURCES
from tauloop.mechanism.description import units

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from tauloop.identification.preparation.measured_log import MeasuredLog
    from tauloop.logs import Signals

    #: A log: a file (a table, or a YAML file that describes a recording), or data in memory.
    LogSource: TypeAlias = str | Path | pd.DataFrame | xr.Dataset | Signals | MeasuredLog
else:

    class _LogType(type):
        """A type that recognizes logs by class names, because xarray is slow to import."""

        def __instancecheck__(cls, value: object) -> bool:
            """Return whether a value is a path or an object of one of the classes."""
            names = {base.__name__ for base in type(value).__mro__}
            return isinstance(value, str | PathLike) or not names.isdisjoint(cls.CLASS_NAMES)

    class LogSource(metaclass=_LogType):
        """The type of a log at run time, with which arguments of functions are checked."""

        CLASS_NAMES = ("DataFrame", "Dataset", "Signals", "MeasuredLog")
        in_words = "a path, a pandas.DataFrame, an xarray.Dataset, Signals or a MeasuredLog"


#: Names of estimators. `tauloop.identification.chosen` creates the estimators, because some of them
#: need other options or the logs.
ESTIMATORS = Registry(
    "tauloop.estimators", Estimator, dict.fromkeys(("ols", "wls", "irls", "tls", "iv"))
)
#: Choices of `IdentificationOptions.unknowns`.
UNKNOWNS = ("standard", "file")
#: Choices of `IdentificationOptions.errors`.
ERRORS = ("independent", "autocorrelated", "decimated", "blocks", "logs")
#: Fields of `PreparationOptions` that override the fields of the same name in a log's own
#: preparation.
OVERRIDING_FIELDS = ("cutoff", "order", "standstill", "trim", "decimation")


def _values_by_name(
    where: str, example: str, metavar: str, *, bare: bool = False, flag: str | None = None
) -> Any:
    """Return an option that maps names to values and may be repeated on the command line.

    Args:
        where, example: name of the field, and an example for messages.
        metavar: placeholder of the value in the command's help.
        bare: whether a name without a value is allowed.
        flag: name of the option on the command line, if it differs from that of the field.
    """
    read = pairs_reader(where, example, bare=bare)
    return option(factory=dict, read=read, repeated=True, metavar=metavar, flag=flag)


def refuse_combinations(
    problems: Problems, options: Mapping[str, Any], others: Mapping[str, Any]
) -> None:
    """Add a problem for each option that is given together with an option that rules it out.

    Args:
        problems: the problems, which are extended.
        options: values of options, by name; false if an option is not given.
        others: values of options, by name, with which `options` cannot be combined.
    """
    for where, value in options.items():
        for other, is_given in others.items():
            if value and is_given:
                problems.add(where, f"cannot be combined with {other}", f"omit {where} or {other}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationOptions(Options):
    """Options of the preparation of all logs, which override those of the recordings.

    Options that are None are taken from the recordings.

    Attributes:
        velocity_source: source of velocities: derived from positions, measured, or fused from both.
            By default validation chooses it unless the recording specifies it.
        cutoff: cutoff frequency of a zero-phase low-pass of positions and measured velocities,
            such as 40Hz. If neither this option nor the recording specifies it, validation chooses
            cutoff, order, standstill, decimation and friction laws.
        order: order of the Butterworth low-pass.
        standstill: fraction of an actuator's largest speed below which it counts as at rest.
        trim: number of samples removed at each end.
        decimation: keep every n-th sample after a zero-phase filter.
        scan_cutoffs: cutoffs to try, Hz, such as 20,50,100. The result shows the validation error
            of each cutoff, the spread of the parameters over the cutoffs, and the chosen cutoff,
            first for all channels together and then for each channel.
        scan_orders: orders to try with each scanned cutoff.
        scan_standstills: standstill fractions to try with each scanned cutoff, such as 1e-6,1e-3.
        period: period of the motion, such as 10s. Logs are averaged over the periods, forces are
            weighted by their noise, and Fourier series replace the filter; max_frequency must be
            given too.
        max_frequency: highest frequency of a periodic motion, Hz.
        hold: channels or axes that are held and not in the logs, such as 'motor_4=30 deg'; without
            a value, at the position of the reference pose.
        fill_gaps: maximum number of consecutive missing samples that are interpolated; the result
            reports the number of interpolated samples.
        resample: resample logs with nonuniform time stamps to uniform sampling. The high-frequency
            part of the positions decides whether the sampling itself is nonuniform, or only the
            time stamps are delayed (jitter).

    Examples:
        >>> import tauloop as tl
        >>> tl.PreparationOptions(cutoff="50 Hz").cutoff
        50.0
    """

    velocity_source: str | None = option(None, choices=SOURCES)
    cutoff: float | None = option(None, metavar="FREQUENCY", unit=units.FREQUENCY)
    order: int | None = None
    standstill: float | None = None
    trim: int | None = None
    decimation: int | None = None
    scan_cutoffs: tuple[float, ...] = option((), metavar="FREQUENCY,...", unit=units.FREQUENCY)
    scan_orders: tuple[int, ...] = (1, 2, 4)
    scan_standstills: tuple[float, ...] = ()
    period: float | None = option(None, metavar="TIME", unit=units.TIME)
    max_frequency: float | None = option(None, metavar="FREQUENCY", unit=units.FREQUENCY)
    hold: Mapping[str, float | str] = _values_by_name("hold", "elbow=0.2", "NAME=VALUE", bare=True)
    fill_gaps: int | None = option(None, least=1)
    resample: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems of options that are incomplete or cannot be combined."""
        if self.scan_standstills and not self.scan_cutoffs:
            problems.add("scan_standstills", "is given without scan_cutoffs", "add scan_cutoffs")
        if (self.period is None) != (self.max_frequency is None):
            problems.add("period", "only one of period and max_frequency is given", "give both")
        option_names = {"velocity": "velocity_source"}
        filter_options = [
            option_names.get(name, name)
            for name in self.stated
            if name not in ("trim", "standstill")
        ]
        if self.scan_cutoffs:
            filter_options.append("scan_cutoffs")
        if filter_options and (self.period, self.max_frequency) != (None, None):
            what = (
                f"{', '.join(filter_options)} cannot be combined with a period: averaged periods are "
                "not filtered, but represented by Fourier series up to max_frequency"
            )
            problems.add("period", what, "omit these options, or filter without a period")

    @property
    def stated(self) -> dict[str, Any]:
        """Fields of a `Preparation` that override the preparation of the logs."""
        values = {name: getattr(self, name) for name in OVERRIDING_FIELDS}
        values["velocity"] = self.velocity_source
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermOptions(Options):
    """Known parameters, and force terms in addition to those of the machine file.

    Attributes:
        known: known parameters ('tip_mass=0.3 kg') or rest lengths of springs ('slide.rest=0.1 m');
            in SI units if no unit is given.
        payload_body: LOG=BODY: in this log the body carries an unknown payload (payload.m,
            payload.mcx ...).
        asymmetric: joint, rod or motor whose friction is different in the two directions.
        stribeck: NAME=SPEED: friction of this joint, rod or motor is larger below this speed, such
            as 'tip=0.2 rad/s'.
        presliding: NAME or NAME=LENGTH: after a velocity reversal, friction of this joint, rod or
            motor reverses over this displacement, such as 'elbow=0.01 rad'. If the length is not
            given, validation chooses it.
        gains: estimate a gain of the measured force for each drive; known parameters set the scale.

    Examples:
        >>> import tauloop as tl
        >>> tl.TermOptions(known={"tip_mass": "0.3 kg"}, gains=True).known
        {'tip_mass': '0.3 kg'}
    """

    known: Mapping[str, float | str] = _values_by_name("known", "'tip_mass=0.3 kg'", "NAME=VALUE")
    payload_body: Mapping[str, str] = _values_by_name(
        "payload_body", "loaded.csv=forearm", "LOG=BODY"
    )
    asymmetric: tuple[str, ...] = option((), metavar="NAME")
    stribeck: Mapping[str, float | str] = _values_by_name(
        "stribeck", "'elbow=0.2 rad/s'", "NAME=SPEED"
    )
    presliding: Mapping[str, float | str] = _values_by_name(
        "presliding", "'elbow' or 'elbow=0.01 rad'", "NAME[=LENGTH]", bare=True
    )
    gains: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems of repeated names, and of payloads on several bodies."""
        for name in sorted(set(self.asymmetric)):
            if self.asymmetric.count(name) > 1:
                problems.add("asymmetric", f"{name!r} is given twice", "give it once")
        bodies = sorted(set(self.payload_body.values()))
        if len(bodies) > 1:
            problems.add(
                "payload_body", f"names several bodies: {', '.join(bodies)}", "give one body"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationOptions(Options):
    """Options of the identification of a machine.

    Attributes:
        data: folder of the data files that YAML files refer to; by default that of the YAML file.
        validation: another recording for validation, instead of the end of each log.
        hold_out: fraction at the end of each log that is used for validation and not fitted.
        unknowns: unknown parameters: the ten standard parameters of each body, or the named
            independent parameters of the machine file.
        output: forces that are measured: of the actuators, or of the joints (after the
            transmission).
        estimator: method of the fit: least squares (ols), least squares weighted for each actuator
            by its residuals (wls), robust least squares against outliers (Huber, irls),
            total least squares for noise in the regressor (tls, see column_error), or with the
            commanded motion as instrumental variables (iv).
        column_error: relative error of the regressor's columns for tls.
        commanded: recording of the commanded positions for iv, with the same samples as the log;
            one for each log.
        disconnected: run of the same motion with the structure disconnected; one for each log. The
            forces of this run, which are only those of the actuators, are subtracted from the
            forces of the log (two-run method). The machine file must then describe the structure
            alone: driven bodies without mass, and drives without inertia and friction.
        errors: error model of the standard deviations: independent errors, autocorrelated errors
            (as estimated from the residuals), decimated errors (white before the decimation), or
            errors with any correlation within blocks of each log or within whole logs. The last two
            include model errors.
        compare_logs: also fit each of several logs separately. Report parameters whose estimates
            differ significantly between the logs, and standard deviations that include the scatter
            between the logs.
        essential: remove base parameters one by one until the standard deviation of each remaining
            parameter is at most this fraction of its value, such as 0.3.
        regroup: also report the base parameters as formulas in link parameters and lengths, as
            `model base-parameters` does.
        consistent: also fit all standard parameters within physical limits, close to those of the
            machine file.
        within_limits: reject poses beyond a stop of the machine file; otherwise they are reported.
        preparation: options of the preparation of the logs.
        terms: known parameters, and force terms in addition to those of the machine file.

    Examples:
        >>> import tauloop as tl
        >>> tl.IdentificationOptions(estimator="ols", hold_out=0.2).hold_out
        0.2
    """

    data: Path | None = None
    validation: LogSource | None = option(None, read=Path, metavar="LOG")
    hold_out: float = option(0.3, least=0.0, most=0.9)
    unknowns: str = option("standard", choices=UNKNOWNS)
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
        """Fraction of each log that is fitted; 1 if there is a validation log."""
        return 1.0 - self.hold_out if self.validation is None else 1.0

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems of options that cannot be combined."""
        terms = self.terms
        if self.hold_out == 0.0 and self.validation is None:
            what = "all data are fitted, so none remain for validation"
            problems.add("hold_out", what, "hold out a fraction, such as 0.3")
        if (self.estimator == "iv") != bool(self.commanded):
            what = "estimator iv and the commanded motion must be given together; one is missing"
            problems.add(
                "commanded", what, "give both estimator iv and the commanded motion of each log"
            )
        iv = {"estimator='iv'": self.estimator == "iv"}
        payload = {"payload_body": terms.payload_body}
        scan_cutoffs = {"scan_cutoffs": self.preparation.scan_cutoffs}
        consistent = {"consistent": self.consistent}
        refuse_combinations(problems, payload, iv | scan_cutoffs | consistent)
        joints = {"output='joints'": self.output == "joints"}
        gains = {"gains": terms.gains}
        refuse_combinations(problems, gains, iv | scan_cutoffs | consistent | joints)
        friction = {
            "asymmetric": terms.asymmetric,
            "stribeck": terms.stribeck,
            "presliding": terms.presliding,
        }
        period = {"period": self.preparation.period is not None}
        refuse_combinations(problems, friction, iv | period)
        other_logs = {"validation": self.validation is not None, "commanded": self.commanded}
        refuse_combinations(problems, {"disconnected": self.disconnected}, other_logs)
        file = {"unknowns='file'": self.unknowns == "file"}
        refuse_combinations(problems, {"regroup": self.regroup}, file)
        refuse_combinations(problems, {"compare_logs": self.compare_logs}, iv | payload)


def texts_of(options: Any) -> dict[str, Any]:
    """Return the options that differ from their defaults, by field, in the form of a study file.

    Raises:
        InputError: a value is a Python object that cannot be expressed as text.
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
                what = (
                    f"an object of type {type(value).__name__} cannot be written as text, as "
                    "worker processes and logs processed in chunks (--folded) require"
                )
                remedy = "give a name, a number or a path"
                raise InputError.of(item.name, what, remedy) from None
    return texts
