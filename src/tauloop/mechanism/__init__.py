"""The machine as data: from a file, checked and frozen."""

from __future__ import annotations

from tauloop.mechanism.library import load, loads, machine_path, shipped_machines
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.schema import json_schema

__all__ = ["Mechanism", "json_schema", "load", "loads", "machine_path", "shipped_machines"]
