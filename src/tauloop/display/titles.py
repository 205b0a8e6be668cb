"""Titles of results, for figures and pages."""

from __future__ import annotations

import re
from typing import Any

#: Titles by the class of the result, if the title differs from the name of the class.
TITLES = {
    "CableSimulation": "Simulation",
    "ControlComparison": "Control",
    "DriveStep": "Step of a drive line",
    "CollisionDetection": "Collision at the platform",
    "MachineIdentification": "Identification",
    "Modes": "Assembly modes",
    "OperationCounts": "Operations",
    "PosePlan": "Poses of a calibration",
    "FreeMotionComparison": "Free motion",
    "VerifiedMachine": "Comparison with other engines",
}


def result_title(result: Any) -> str:
    """Return the title of a result: its kind and the name of its machine."""
    kind = type(result).__name__
    return f"{TITLES.get(kind) or _spelled(kind)}: {machine_name(result)}".removesuffix(": ")


def machine_name(result: Any) -> str:
    """Return the name of the machine or drive line of a result; empty if the result has none."""
    provenance = getattr(result, "provenance", None)
    for candidate in (
        getattr(result, "machine", None),
        provenance and provenance.inputs.get("machine"),
        getattr(getattr(getattr(result, "model", None), "mechanism", None), "name", None),
        getattr(getattr(result, "line", None), "name", None),
    ):
        if isinstance(candidate, str):
            return candidate
    return ""


def _spelled(name: str) -> str:
    """Return the name of a class as separate words, such as "Pose plan"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
