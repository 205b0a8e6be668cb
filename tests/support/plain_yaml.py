"""Nodes of a machine file as plain data."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tauloop.mechanism.description.yaml_nodes import Mapping, Node, Scalar


def plain(node: Node) -> Any:
    """Nodes as the plain data that other YAML readers (YAML 1.2) would give."""
    if isinstance(node, Mapping):
        return {entry.key: plain(entry.value) for entry in node.entries}
    if isinstance(node, Scalar):
        is_number = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", node.text)
        return yaml.safe_load(node.text) if is_number and not node.is_quoted else node.text
    return [plain(item) for item in node.items]
