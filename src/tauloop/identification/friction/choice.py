"""Choice of friction laws by validation on a part of the logs.

A law is chosen here if neither the machine file nor the user states it. A standstill that was
chosen without the laws may compensate for missing presliding friction, because it removes friction
at low speed. The same is true of a source of velocity. Both are therefore tried again with the
laws. A standstill may also hide the reversals at which a late force of friction is seen, so that it
is compared again on forces without their delay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

#: Largest number of rounds in which laws are added.
MAX_ROUNDS = 2
#: A choice is accepted if it reduces the validation error by this share.
MIN_ERROR_REDUCTION = 0.01

#: A function that identifies the machine from logs with terms; None if the logs do not support it.
IdentifyWithTerms: TypeAlias = Callable[[PreparedLogs, TermOptions], MachineIdentification | None]
#: The same without the search for faults.
FitWithTerms: TypeAlias = Callable[[PreparedLogs, TermOptions], Identification | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """Laws of friction that were chosen by validation.

    Attributes:
        terms: the terms with the laws.
        terms_changed: whether laws were added.
        changes: options of the preparation that are better with the laws, or with the delays of
            the forces, by name.
        notes: the choices in words.
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
        laws: the laws.
        error: validation error with the laws, %; infinite if the identification failed.
        plain: validation error without any law, %.
        lengths: presliding lengths, by element.
        delays: delays of forces, s, by output.
    """

    terms: TermOptions
    laws: tuple[MissingLaw, ...]
    error: float
    plain: float
    lengths: Mapping[str, float]
    delays: Mapping[str, float]


def choose_friction(
    prepared: PreparedLogs,
    terms: TermOptions,
    identify_with: IdentifyWithTerms,
    fit_with: FitWithTerms,
    *,
    velocities: Sequence[str] = (),
) -> FrictionChoice:
    """Return the laws of friction that reduce the validation error, if there are any.

    Each round adds the laws that the findings of the previous fit report as missing.

    Args:
        prepared: the part of the logs that is used for the choice.
        terms: the stated terms.
        identify_with: identification with terms.
        fit_with: fit with terms.
        velocities: channels whose measured velocity may be used.
    """
    best = _add_laws(prepared, terms, identify_with)
    changes: dict[str, Any] = {}
    notes: list[str] = []
    chosen = {choice.option: choice.value for choice in prepared.channels.chosen}
    standstill = Preparation(cutoff=None).standstill
    if chosen.get("standstill", standstill) != standstill:
        other = _add_laws(prepared.changed(standstill=standstill), terms, identify_with)
        if other.laws and other.error * (1.0 + MIN_ERROR_REDUCTION) <= best.error:
            best = replace(other, plain=min(best.plain, other.plain))
            changes["standstill"] = standstill
        elif other.delays:
            note = _better_without_delays(prepared, terms, fit_with, other.delays, standstill)
            if note:
                best = other
                changes["standstill"] = standstill
                notes.append(note)
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
    """Return a note if forces without their delays are fitted as well with another standstill.

    Args:
        prepared: the part of the logs that is used for the choice, with the chosen standstill.
        terms: the stated terms.
        fit_with: fit with terms.
        delays: delays of forces, s, by output.
        standstill: the other standstill.
    """
    corrected = prepared.with_earlier_forces(delays)
    chosen = _validation_error(fit_with(corrected, terms))
    other = _validation_error(fit_with(corrected.changed(standstill=standstill), terms))
    if other > chosen * (1.0 + MIN_ERROR_REDUCTION):
        return ""
    return (
        f"standstill {standstill:g} chosen by validation of forces without their delay: error "
        f"{other:.3g} % (with the standstill chosen before: {chosen:.3g} %)"
    )


def _law_note(best: _Round, changes: Mapping[str, Any]) -> str:
    """Return a note on the laws, with the validation errors."""
    listed = ", ".join(f"{law.kind} {law.element}" for law in best.laws)
    text = (
        f"friction chosen by validation: {listed}; error {best.error:.3g} % with it, "
        f"{best.plain:.3g} % without"
    )
    if "standstill" in changes:
        text += f"; with it standstill {changes['standstill']:g}"
    return text


def _add_laws(
    prepared: PreparedLogs, terms: TermOptions, identify_with: IdentifyWithTerms
) -> _Round:
    """Add laws that are reported as missing, as long as the validation error falls."""
    laws: list[MissingLaw] = []
    result = identify_with(prepared, terms)
    delays = {} if result is None else result.force_delays
    plain = error = _validation_error(_fit_of(result))
    for _ in range(MAX_ROUNDS):
        missing = () if result is None else result.friction_laws
        if not missing:
            break
        terms_with_laws = _with_laws(terms, missing)
        result_with_laws = identify_with(prepared, terms_with_laws)
        error_with_laws = _validation_error(_fit_of(result_with_laws))
        if error_with_laws * (1.0 + MIN_ERROR_REDUCTION) > error:
            break
        laws += missing
        terms = terms_with_laws
        result = result_with_laws
        error = error_with_laws
    lengths = {} if result is None or result.presliding is None else result.presliding.lengths
    return _Round(
        terms=terms, laws=tuple(laws), error=error, plain=plain, lengths=lengths, delays=delays
    )


def _best_source(
    prepared: PreparedLogs, best: _Round, fit_with: FitWithTerms, velocities: Sequence[str]
) -> tuple[str, str] | None:
    """Return a source of all velocities that is better with the laws, and a note, or None."""
    terms = replace(best.terms, presliding=dict(best.lengths))
    errors = {}
    for source in SOURCES:
        trial = prepared.changed(velocities=dict.fromkeys(velocities, source))
        errors[source] = _validation_error(fit_with(trial, terms))
    source = min(errors, key=errors.__getitem__)
    if errors[source] * (1.0 + MIN_ERROR_REDUCTION) > best.error:
        return None
    others = ", ".join(f"{name}: {error:.3g} %" for name, error in errors.items() if name != source)
    note = (
        f"velocity {source} chosen by validation with this friction: error "
        f"{errors[source]:.3g} % ({others})"
    )
    return source, note


def _fit_of(result: MachineIdentification | None) -> Identification | None:
    """Return the fit of an identification."""
    return None if result is None else result.identification


def _validation_error(fitted: Identification | None) -> float:
    """Return the RMS of the outputs' errors on the held-out part, % of the largest force."""
    if fitted is None:
        return float("inf")
    return float(np.sqrt(np.mean([output.rmse_percent**2 for output in fitted.held_out])))


def _with_laws(terms: TermOptions, laws: Sequence[MissingLaw]) -> TermOptions:
    """Return the terms with laws of friction; presliding lengths are searched again."""
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
