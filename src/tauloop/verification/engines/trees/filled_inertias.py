"""Replacement of inertias that an engine rejects, where this does not change the dynamics.

A planar machine is described by moments about the normal of its plane; the other moments are zero.
Rounding errors of the parallel-axis theorem make them negative, and Pinocchio rejects negative
moments. The dynamics of a link that rotates only about a fixed direction n depend only on J = n·I
n. Such a link gets the inertia J (n n^T + (1 - n n^T) / 2) of a flat body perpendicular to n. The
dynamics of a link that does not rotate do not depend on its rotational inertia.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.trees.rigid_tree import GROUND, EngineLink, RigidTree

#: Two directions are parallel if the sine of their angle is below this value.
PARALLEL_TOLERANCE = 1e-9
#: A negative moment whose magnitude relative to the largest is below this value is a rounding
#: error.
INERTIA_ROUNDING = 1e-12


def with_possible_inertias(tree: RigidTree) -> RigidTree:
    """Return the tree without negative moments of inertia about the axes of the links' frames.

    Raises:
        EngineError: a link that rotates about several directions has a negative moment of inertia
            that is not a rounding error.
    """
    axes = rotation_axes(tree)
    links: list[EngineLink] = []
    problems = Problems()
    for link, directions in zip(tree.links, axes, strict=True):
        inertia = link.inertia
        if inertia is None or np.diag(inertia.about_center).min() >= 0.0:
            links.append(link)
            continue
        replacement = _replacement(inertia.about_center, directions)
        if np.diag(replacement).min() < 0.0:
            moment = float(np.diag(inertia.about_center).min())
            what = (
                f"a moment of inertia about its mass center is {moment:.3g} kg m^2, and the "
                "rotation of the link depends on it"
            )
            problems.add(link.name, what, "correct the inertia: moments must not be negative")
        links.append(replace(link, inertia=replace(inertia, about_center=replacement)))
    EngineError.raise_if_any(problems)
    return replace(tree, links=tuple(links))


def rotation_axes(tree: RigidTree) -> tuple[Array, ...]:
    """Return the directions (k, 3) about which each link can rotate, in the frame of the link.

    Parallel directions are returned once.
    """
    axes: list[Array] = []
    for link in tree.links:
        parent_axes = np.zeros((0, 3)) if link.parent == GROUND else axes[link.parent]
        directions = parent_axes @ link.pose.rotation
        primitive = link.primitive
        if primitive is not None and primitive.kind == "ball":
            directions = np.eye(3)
        elif primitive is not None and primitive.kind == "hinge":
            axis = np.asarray(primitive.axis, dtype=float)[None, :]
            is_other = (
                not len(directions) or np.abs(np.cross(directions, axis)).max() > PARALLEL_TOLERANCE
            )
            # A rotation about a second axis changes the first axis in this link's frame, so that
            # the link can rotate about all directions.
            if not len(directions):
                directions = axis
            elif is_other:
                directions = np.eye(3)
        axes.append(directions)
    return tuple(axes)


def _replacement(inertia: Array, directions: Array) -> Array:
    """Return the replacement of an inertia (3, 3) for a link with rotation axes (k, 3)."""
    if not len(directions):
        return np.asarray(np.eye(3) * np.abs(inertia).max())
    if len(directions) == 1:
        n = directions[0]
        moment = float(n @ inertia @ n)
        return np.asarray(moment * (np.outer(n, n) + 0.5 * (np.eye(3) - np.outer(n, n))))
    smallest = float(np.diag(inertia).min())
    if -smallest < INERTIA_ROUNDING * np.abs(inertia).max():
        return inertia - smallest * np.eye(3)
    return inertia
