"""Laws of friction that neither the machine file nor the user states: chosen by validation on a part of the logs.

A standstill that was chosen without them takes their place where friction turns round slowly, since
it takes friction off at low speed, and so does a source of velocity: with the laws both are tried
again.
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

#: Rounds of naming laws; a choice is taken where the validation error is smaller by this share.
ROUNDS, BETTER = 2, 0.01

#: Identify the machine from some logs with some terms, with the findings or the fit alone; None
#: where the logs do not support it.
Identified: TypeAlias = Callable[[PreparedLogs, TermOptions], MachineIdentification | None]
FittedAlone: TypeAlias = Callable[[PreparedLogs, TermOptions], Identification | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """Laws of friction that validation chose.

    Attributes:
        terms: with them.
        terms_changed: whether there are any.
        changes: options of the preparation that are better with them, by name.
        notes: the choices in words.
    """

    terms: TermOptions
    terms_changed: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Round:
    """Laws after some rounds.

    Attributes:
        terms: with the laws.
        laws: that were named.
        error: validation error with them, %; infinite where nothing was identified.
        plain: without any.
        lengths: over which presliding friction turns round.
    """

    terms: TermOptions
    laws: tuple[MissingLaw, ...]
    error: float
    plain: float
    lengths: Mapping[str, float]


def choose_friction(
    prepared: PreparedLogs,
    terms: TermOptions,
    identified: Identified,
    fitted_alone: FittedAlone,
    *,
    velocities: Sequence[str] = (),
) -> FrictionChoice:
    """Return the laws of friction that lessen the validation error, if any.

    Each round names the laws that the findings of the fit before ask for.

    Args:
        prepared: the part of the logs that chooses.
        terms: as stated.
        identified, fitted_alone: see `Identified`.
        velocities: channels whose measured velocity may be used.
    """
    best, changes = _rounds(prepared, terms, identified), dict[str, Any]()
    chosen = {choice.option: choice.value for choice in prepared.channels.chosen}
    standstill = Preparation(cutoff=None).standstill
    if chosen.get("standstill", standstill) != standstill:
        other = _rounds(prepared.changed(standstill=standstill), terms, identified)
        if other.laws and other.error * (1.0 + BETTER) <= best.error:
            plain = min(best.plain, other.plain)
            best, changes = replace(other, plain=plain), {"standstill": standstill}
    if not best.laws:
        return FrictionChoice(terms=terms)
    notes = [_in_words(best, changes)]
    if velocities:
        source = _best_source(prepared.changed(**changes), best, fitted_alone, velocities)
        if source is not None:
            changes["velocities"] = dict.fromkeys(velocities, source[0])
            notes.append(source[1])
    return FrictionChoice(terms=best.terms, terms_changed=True, changes=changes, notes=tuple(notes))


def _in_words(best: _Round, changes: Mapping[str, Any]) -> str:
    """Return the laws with the errors that decided."""
    listed = ", ".join(f"{law.kind} {law.element}" for law in best.laws)
    text = f"friction chosen by validation: {listed}; error {best.error:.3g} % with, {best.plain:.3g} % without"
    if "standstill" in changes:
        text += f"; standstill {changes['standstill']:g} with them"
    return text


def _rounds(prepared: PreparedLogs, terms: TermOptions, identified: Identified) -> _Round:
    """Return the laws that findings ask for, round by round as long as the error falls."""
    laws: list[MissingLaw] = []
    result = identified(prepared, terms)
    plain = error = _validation_error(_fit_of(result))
    for _ in range(ROUNDS):
        offered = () if result is None else result.friction_laws
        if not offered:
            break
        named = _with_laws(terms, offered)
        after = identified(prepared, named)
        less = _validation_error(_fit_of(after))
        if less * (1.0 + BETTER) > error:
            break
        laws += offered
        terms, result, error = named, after, less
    lengths = {} if result is None or result.presliding is None else result.presliding.lengths
    return _Round(terms=terms, laws=tuple(laws), error=error, plain=plain, lengths=lengths)


def _best_source(
    prepared: PreparedLogs, best: _Round, fitted_alone: FittedAlone, velocities: Sequence[str]
) -> tuple[str, str] | None:
    """Return the source of all velocities that is better with the laws than those before, and that in words."""
    terms = replace(best.terms, presliding=dict(best.lengths))
    errors = {}
    for source in SOURCES:
        trial = prepared.changed(velocities=dict.fromkeys(velocities, source))
        errors[source] = _validation_error(fitted_alone(trial, terms))
    source = min(errors, key=errors.__getitem__)
    if errors[source] * (1.0 + BETTER) > best.error:
        return None
    others = ", ".join(f"{name}: {error:.3g} %" for name, error in errors.items() if name != source)
    return (
        source,
        f"velocity {source} chosen by validation with this friction: error {errors[source]:.3g} % ({others})",
    )


def _fit_of(result: MachineIdentification | None) -> Identification | None:
    """Return the fit of an identification."""
    return None if result is None else result.identification


def _validation_error(fitted: Identification | None) -> float:
    """Return the root mean square of the outputs' errors on the part that judges, % of the largest force."""
    if fitted is None:
        return float("inf")
    return float(np.sqrt(np.mean([output.rmse_percent**2 for output in fitted.held_out])))


def _with_laws(terms: TermOptions, laws: Sequence[MissingLaw]) -> TermOptions:
    """Return the terms with laws of friction; a length of presliding is searched again."""
    asymmetric = [law.element for law in laws if law.kind == "asymmetric"]
    return replace(
        terms,
        asymmetric=(
            *terms.asymmetric,
            *(name for name in asymmetric if name not in terms.asymmetric),
        ),
        stribeck={
            **terms.stribeck,
            **{law.element: law.size for law in laws if law.kind == "stribeck"},
        },
        presliding={
            **terms.presliding,
            **{law.element: "" for law in laws if law.kind == PRESLIDING},
        },
    )
