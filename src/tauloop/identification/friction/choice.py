"""Choice of friction laws by validation on a part of the logs.

A law is chosen here if neither the machine file nor the user specifies it. The standstill threshold
removes friction at low speed. A threshold or a velocity source that was chosen without the laws may
therefore compensate for missing presliding friction, so both are validated again with the laws. The
threshold may also mask velocity reversals, which reveal a delay of friction, so it is also compared
on delay-compensated forces.

Findings do not report presliding friction if its length is close to an encoder step, or if a poor
fit of other drives hides it. The residuals then resemble a delay. If a drive has presliding
friction, or forces seem to be delayed, presliding friction is therefore tried for all drives, and
compared with a fit of delay-compensated forces without it. The preparation that was chosen without
these laws may mask them, so they are also tried with the preparation before that choice, and the
cutoff is chosen again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

import numpy as np

from tauloop.common.records import dataclass
from tauloop.identification.estimation.result import Identification
from tauloop.identification.faults.missing_laws import MissingLaw
from tauloop.identification.friction.presliding import PRESLIDING
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.options import TermOptions
from tauloop.identification.preparation.prepare import PreparedLogs
from tauloop.logs import Preparation
from tauloop.logs.velocities import SOURCES

#: Maximum number of rounds in which laws are added.
MAX_LAW_ROUNDS = 2
#: A choice is accepted if it reduces the validation error by at least this fraction.
MIN_ERROR_REDUCTION = 0.01
#: Candidate cutoffs with presliding friction, as multiples of the lowest cutoff of all channels.
CUTOFF_FACTORS = (0.71, 1.0, 1.41, 2.0)

#: A function that identifies the machine from logs with terms; None if the logs do not support it.
IdentifyWithTerms: TypeAlias = Callable[[PreparedLogs, TermOptions], MachineIdentification | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermsFit:
    """A fit with terms, without a search for faults.

    Attributes:
        error: validation error of the forces, %, in the band that all cutoffs pass, so that
            cutoffs can be compared.
        lengths: presliding lengths that validation chose, by element.
    """

    error: float
    lengths: Mapping[str, float]


#: A function that fits logs with terms; None if the logs do not support it.
FitWithTerms: TypeAlias = Callable[[PreparedLogs, TermOptions], TermsFit | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """Friction laws that were chosen by validation.

    Attributes:
        terms: the terms with the laws.
        terms_changed: whether laws were added.
        changes: options of the preparation that are better with the laws, or with the delays of
            the forces, by name.
        notes: descriptions of the choices.
    """

    terms: TermOptions
    terms_changed: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """The laws after some rounds.

    Attributes:
        terms: the terms with the laws.
        laws: kinds and elements of the laws.
        error: validation error with the laws, %; infinite if the identification failed.
        plain: validation error without any law, %.
        lengths: presliding lengths, by element.
        delays: delays of forces in the fit without any law, s, by output.
        delays_with_laws: delays of forces in the fit with the laws, s, by output.
        has_presliding: whether findings report presliding friction.
    """

    terms: TermOptions
    laws: tuple[str, ...]
    error: float
    plain: float
    lengths: Mapping[str, float]
    delays: Mapping[str, float]
    delays_with_laws: Mapping[str, float]
    has_presliding: bool


def choose_friction(
    prepared: PreparedLogs,
    terms: TermOptions,
    identify_with: IdentifyWithTerms,
    fit_with: FitWithTerms,
    *,
    elements: Sequence[str] = (),
    velocities: Sequence[str] = (),
) -> FrictionChoice:
    """Return the terms with all friction laws that reduce the validation error.

    Each round adds the laws that the findings of the previous fit report as missing. If presliding
    friction or a delay is among them, presliding friction of all other elements is tried as well.

    Args:
        prepared: the part of the logs that is used for the choice.
        terms: the given terms.
        identify_with: identification with terms.
        fit_with: fit with terms.
        elements: elements whose presliding friction is tried.
        velocities: channels whose measured velocity may be used.
    """
    best = _add_laws(prepared, terms, identify_with)
    changes: dict[str, Any] = {}
    notes: list[str] = []
    chosen = {choice.option: choice.value for choice in prepared.channels.chosen}
    standstill = Preparation(cutoff=None).standstill
    rounds = [(best, dict(changes))]
    if chosen.get("standstill", standstill) != standstill:
        other = _add_laws(prepared.changed(standstill=standstill), terms, identify_with)
        rounds.append((other, {"standstill": standstill}))
        if other.laws and other.error * (1.0 + MIN_ERROR_REDUCTION) <= best.error:
            best = replace(other, plain=min(best.plain, other.plain))
            changes["standstill"] = standstill
        elif other.delays:
            note = _better_without_delays(prepared, terms, fit_with, other.delays, standstill)
            if note:
                best = other
                changes["standstill"] = standstill
                notes.append(note)
    for start, start_changes in sorted(rounds, key=lambda entry: entry[0].error):
        if not (start.has_presliding or start.delays_with_laws):
            continue
        further = _add_presliding(
            prepared.changed(**start_changes), start, elements, identify_with, fit_with, velocities
        )
        rival = _error(fit_with(prepared.changed(**changes), best.terms))
        if further is not None and further.error * (1.0 + MIN_ERROR_REDUCTION) <= rival:
            changes = {**start_changes, **further.changes}
            plain = min(entry.plain for entry, _ in rounds)
            best = replace(further.best, plain=plain)
            notes += [_law_note(best, changes), *further.notes]
            return FrictionChoice(
                terms=best.terms, terms_changed=True, changes=changes, notes=tuple(notes)
            )
        break
    if not best.laws:
        return FrictionChoice(terms=terms, changes=changes, notes=tuple(notes))
    notes.append(_law_note(best, changes))
    if velocities:
        source = _best_source(prepared.changed(**changes), best, fit_with, velocities)
        if source is not None:
            name, note = source
            changes["velocities"] = dict.fromkeys(velocities, name)
            notes.append(note)
    return FrictionChoice(terms=best.terms, terms_changed=True, changes=changes, notes=tuple(notes))


def _better_without_delays(
    prepared: PreparedLogs,
    terms: TermOptions,
    fit_with: FitWithTerms,
    delays: Mapping[str, float],
    standstill: float,
) -> str:
    """Return a note if another standstill fits delay-compensated forces equally well.

    Args:
        prepared: the part of the logs that is used for the choice, with the chosen standstill.
        terms: the given terms.
        fit_with: fit with terms.
        delays: delays of forces, s, by output.
        standstill: the other standstill.
    """
    corrected = prepared.with_earlier_forces(delays)
    chosen = _error(fit_with(corrected, terms))
    other = _error(fit_with(corrected.changed(standstill=standstill), terms))
    if other > chosen * (1.0 + MIN_ERROR_REDUCTION):
        return ""
    return (
        f"standstill {standstill:g} selected on delay-compensated forces: error {other:.3g} % "
        f"(with the standstill chosen before: {chosen:.3g} %)"
    )


def _law_note(best: _Round, changes: Mapping[str, Any]) -> str:
    """Return a note on the laws, with the validation errors."""
    text = (
        f"friction chosen by validation: {', '.join(best.laws)}; error {best.error:.3g} % with this "
        f"friction, {best.plain:.3g} % without it"
    )
    if "standstill" in changes:
        text += f"; standstill with this friction {changes['standstill']:g}"
    return text


def _add_laws(
    prepared: PreparedLogs, terms: TermOptions, identify_with: IdentifyWithTerms
) -> _Round:
    """Add laws that are reported as missing, as long as the validation error falls."""
    laws: list[str] = []
    result = identify_with(prepared, terms)
    delays = {} if result is None else result.force_delays
    plain = error = _validation_error(_fit_of(result))
    has_presliding = False
    for _ in range(MAX_LAW_ROUNDS):
        missing = () if result is None else result.friction_laws
        if not missing:
            break
        has_presliding = has_presliding or any(law.kind == PRESLIDING for law in missing)
        terms_with_laws = _with_laws(terms, missing)
        result_with_laws = identify_with(prepared, terms_with_laws)
        error_with_laws = _validation_error(_fit_of(result_with_laws))
        if error_with_laws * (1.0 + MIN_ERROR_REDUCTION) > error:
            break
        laws += (f"{law.kind} {law.element}" for law in missing)
        terms = terms_with_laws
        result = result_with_laws
        error = error_with_laws
    lengths = {} if result is None or result.presliding is None else result.presliding.lengths
    return _Round(
        terms=terms,
        laws=tuple(laws),
        error=error,
        plain=plain,
        lengths=lengths,
        delays=delays,
        delays_with_laws=_delays(result),
        has_presliding=has_presliding,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FurtherPresliding:
    """Presliding friction of further elements, with the best preparation for it.

    Attributes:
        best: the laws.
        error: validation error with the laws, %, from `FitWithTerms`.
        changes: changes of the preparation.
        notes: notes on the changes.
    """

    best: _Round
    error: float
    changes: Mapping[str, Any]
    notes: tuple[str, ...]


def _add_presliding(
    prepared: PreparedLogs,
    best: _Round,
    elements: Sequence[str],
    identify_with: IdentifyWithTerms,
    fit_with: FitWithTerms,
    velocities: Sequence[str],
) -> _FurtherPresliding | None:
    """Return the laws with presliding friction of further elements; None if these are not better.

    They are not better if the forces without the delays that the fit shows are explained equally
    well, or if a force is late for a reason other than friction.

    Args:
        prepared: the part of the logs that is used for the choice.
        best: the laws so far.
        elements: elements whose presliding friction is tried.
        identify_with: identification with terms.
        fit_with: fit with terms.
        velocities: channels whose measured velocity may be used.
    """
    terms = best.terms
    with_laws = {*terms.presliding, *terms.stribeck, *terms.asymmetric}
    added = tuple(name for name in elements if name not in with_laws)
    searched = replace(terms, presliding={**terms.presliding, **dict.fromkeys(added, "")})
    if not added:
        # Lengths that are known hardly depend on the preparation, and are not searched again.
        searched = replace(terms, presliding={**terms.presliding, **best.lengths})
    starts: list[dict[str, Any]] = [{"standstill": Preparation(cutoff=None).standstill}]
    if prepared.unchosen and not prepared.is_same(starts[0], prepared.unchosen):
        starts.append(dict(prepared.unchosen))
    fits = [fit_with(prepared.changed(**start), searched) for start in starts]
    number = min(range(len(fits)), key=lambda index: _error(fits[index]))
    start = starts[number]
    searched_fit = fits[number]
    notes: list[str] = []
    tried_sources = SOURCES if velocities else ()
    for source in tried_sources:
        trial = {**start, "velocities": dict.fromkeys(velocities, source)}
        if prepared.is_same(starts[number], trial):
            continue
        source_fit = fit_with(prepared.changed(**trial), searched)
        if _error(source_fit) * (1.0 + MIN_ERROR_REDUCTION) <= _error(searched_fit):
            note = _choice_note(
                "velocities", trial["velocities"], _error(source_fit), _error(searched_fit)
            )
            notes = [note]
            start = trial
            searched_fit = source_fit
    if searched_fit is None:
        return None
    fixed = replace(terms, presliding={**terms.presliding, **searched_fit.lengths})
    search = _OptionSearch(prepared, fixed, fit_with, start, searched_fit.error)
    search.notes += notes
    cutoffs = prepared.possible_cutoffs(search.changes, CUTOFF_FACTORS)
    search.try_values({"cutoff": cutoff, "cutoffs": {}} for cutoff in cutoffs)
    chosen = prepared.changed(**search.changes)
    least_error = _error(fit_with(chosen, terms))
    if best.delays_with_laws:
        corrected = chosen.with_earlier_forces(best.delays_with_laws)
        least_error = min(least_error, _error(fit_with(corrected, terms)))
    if search.error * (1.0 + MIN_ERROR_REDUCTION) > least_error:
        return None
    further = tuple(name for name in added if name in searched_fit.lengths)
    terms = replace(terms, presliding={**terms.presliding, **dict.fromkeys(further, "")})
    result = identify_with(chosen, terms)
    if result is None or result.presliding is None or result.late_outputs:
        return None
    laws = (*best.laws, *(f"{PRESLIDING} {name}" for name in further))
    error = _validation_error(result.identification)
    return _FurtherPresliding(
        best=replace(best, terms=terms, laws=laws, error=error),
        error=search.error,
        changes=search.changes,
        notes=tuple(search.notes),
    )


class _OptionSearch:
    """A search over options of the preparation, with fixed friction laws."""

    def __init__(
        self,
        prepared: PreparedLogs,
        terms: TermOptions,
        fit_with: FitWithTerms,
        changes: Mapping[str, Any],
        error: float,
    ) -> None:
        """Start with changes of the preparation and their validation error, %."""
        self._prepared = prepared
        self._terms = terms
        self._fit_with = fit_with
        self.changes = dict(changes)
        self.error = error
        self.notes: list[str] = []

    def try_values(self, values: Iterable[Mapping[str, Any]]) -> None:
        """Choose the best of several changes if it reduces the error enough."""
        before = self.error
        changes = self.changes
        for value in values:
            trial = {**changes, **value}
            error = _error(self._fit_with(self._prepared.changed(**trial), self._terms))
            if error * (1.0 + MIN_ERROR_REDUCTION) <= before and error < self.error:
                self.changes = trial
                self.error = error
        if self.error < before:
            name, value = next(
                (name, value)
                for name, value in self.changes.items()
                if changes.get(name) != value and name in ("velocities", "cutoff")
            )
            self.notes.append(_choice_note(name, value, self.error, before))


def _choice_note(option: str, value: Any, error: float, before: float) -> str:
    """Return a note on an option whose value was changed because of the friction laws."""
    if option == "velocities":
        name = next(iter(value.values()))
        text = f"velocity source {name!r}"
    else:
        text = f"cutoff {value:.3g}"
    return f"{text} chosen by validation with this friction: error {error:.3g} % ({before:.3g} %)"


def _error(fitted: TermsFit | None) -> float:
    """Return the error of a fit; infinite if the logs do not support it."""
    return float("inf") if fitted is None else fitted.error


def _delays(result: MachineIdentification | None) -> dict[str, float]:
    """Return the delays of forces that findings or residuals show, s, by output."""
    if result is None:
        return {}
    delays: dict[str, float] = {}
    for term in result.identification.timing:
        if term.kind == "delay" and term.is_shown:
            for output in term.outputs:
                delays[output] = delays.get(output, 0.0) + term.value
    return {**delays, **result.force_delays}


def _best_source(
    prepared: PreparedLogs, best: _Round, fit_with: FitWithTerms, velocities: Sequence[str]
) -> tuple[str, str] | None:
    """Return a source of all velocities that is better with the laws, and a note; or None."""
    terms = replace(best.terms, presliding=dict(best.lengths))
    errors = {}
    for source in SOURCES:
        trial = prepared.changed(velocities=dict.fromkeys(velocities, source))
        errors[source] = _error(fit_with(trial, terms))
    source = min(errors, key=errors.__getitem__)
    if errors[source] * (1.0 + MIN_ERROR_REDUCTION) > _error(fit_with(prepared, terms)):
        return None
    others = ", ".join(f"{name}: {error:.3g} %" for name, error in errors.items() if name != source)
    note = (
        f"velocity source {source!r} chosen by validation with this friction: error "
        f"{errors[source]:.3g} % ({others})"
    )
    return source, note


def _fit_of(result: MachineIdentification | None) -> Identification | None:
    """Return the fit of an identification; None if the identification is None."""
    return None if result is None else result.identification


def _validation_error(fitted: Identification | None) -> float:
    """Return the RMS of the outputs' errors on the held-out part, % of the largest force."""
    if fitted is None:
        return float("inf")
    return float(np.sqrt(np.mean([output.rmse_percent**2 for output in fitted.held_out])))


def _with_laws(terms: TermOptions, laws: Sequence[MissingLaw]) -> TermOptions:
    """Return the terms with friction laws; presliding lengths are searched again."""
    asymmetric = list(terms.asymmetric)
    stribeck = dict(terms.stribeck)
    presliding = dict(terms.presliding)
    for law in laws:
        if law.kind == "asymmetric" and law.element not in terms.asymmetric:
            asymmetric.append(law.element)
        elif law.kind == "stribeck":
            stribeck[law.element] = law.size
        elif law.kind == PRESLIDING:
            presliding[law.element] = ""
    return replace(terms, asymmetric=tuple(asymmetric), stribeck=stribeck, presliding=presliding)
