"""Ports of exported functions: names, columns, units and meanings in C headers and manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tauloop.compiler.c.calling.signature import CPort
from tauloop.equations.ports import (
    Port,
    coordinate_units,
    direction_name,
    directional_name,
    factor_of,
    jacobian_name,
    output_port,
    velocity_units,
)
from tauloop.model.model import Model
from tauloop.model.motion import Motion


def c_ports(model: Model, motion: Motion) -> dict[str, CPort]:
    """Return every port that an exported function may have."""
    topology, assembly = model.topology, model.assembly
    coordinates, velocities = coordinate_units(topology), velocity_units(topology)
    closures = tuple(assembly.loops.names[i] for i in assembly.rows)
    actuators, force_units = model.output_ports("actuators")
    table, free = model.mechanism.parameters, model.free
    cabled = tuple(model.mechanism.cables)
    newtons = ("N",) * len(cabled)
    closing = ["N" if assembly.loops.is_length[i] else "N m" for i in assembly.rows]
    momentum_rate_units = ["N m" if is_angular else "N" for is_angular in topology.angular]
    pairs = [
        (row, unit, p)
        for row, unit in zip(actuators, force_units, strict=True)
        for p in model.parameters
    ]
    entries = (f"{row} / {p.name}" for row, _, p in pairs)
    weights = (
        "w > 0: redundant actuators share forces by the least sum of w (u - p)^2, p from "
        "preloads; 1 for all alike"
    )
    preloads = (
        "tensions that winches hold their cables at where nothing else is needed; 0 for the least"
    )
    outputs = output_port(model.mechanism)
    start = "start values for all coordinates, such as the last sample's q: Newton's method and the turns of angles"
    independent = tuple(topology.velocity_names[i] for i in assembly.independent)
    external_units = tuple(momentum_rate_units[i] for i in assembly.independent)
    multipliers = "multipliers of the loop equations: N for lengths, N m for directions"
    rows = f"Y by rows: {len(actuators)} actuator forces, each on {len(model.parameters)} dynamic parameters"
    listed = [
        ("start", topology.coordinate_names, coordinates, start),
        (
            "theta",
            free,
            (f"SI unit for {table[leaf].unit or '1'}" for leaf in free),
            "parameters that were left free",
        ),
        ("weight", actuators, ("1",) * len(actuators), weights),
        ("preload", cabled, newtons, preloads),
        ("tension", cabled, newtons, "tensions of cables"),
        ("force", actuators, force_units, "actuator forces u"),
        ("closure_force", closures, closing, multipliers),
        ("regressor", entries, (f"({unit})/({p.unit})" for _, unit, p in pairs), rows),
        ("outputs", outputs.columns, outputs.units, "outputs of the machine file"),
        ("q", topology.coordinate_names, coordinates, "all coordinates"),
        ("v", topology.velocity_names, velocities, "all velocities"),
        ("a", topology.velocity_names, (f"{unit}^2" for unit in velocities), "all accelerations"),
        (
            "momentum",
            topology.velocity_names,
            (f"{unit} s" for unit in momentum_rate_units),
            "momenta of all velocities, dT/dv",
        ),
        (
            "momentum_rate",
            topology.velocity_names,
            momentum_rate_units,
            "their rates, such as differences from sample to sample",
        ),
        (
            "last_momentum",
            topology.velocity_names,
            (f"{unit} s" for unit in momentum_rate_units),
            "momenta of the last sample",
        ),
        (
            "last_external_force",
            independent,
            external_units,
            "estimate of the last sample; 0 to begin with",
        ),
        (
            "external_force",
            independent,
            external_units,
            "force from outside on the platform's velocities, a lag of `bandwidth`",
        ),
        (
            "period",
            ("period",),
            ("s",),
            "time since the last sample; 0 at the first, where there are no momenta yet",
        ),
        ("bandwidth", ("bandwidth",), ("rad/s",), "K of the lag; its delay is 1/K"),
    ]
    listed += [
        (name, port.columns, port.units, f"{name} of the {motion.ports.name}")
        for name, port in motion.ports.motion.items()
    ]
    ports = {}
    for name, columns, units, meaning in listed:
        named = tuple(columns)
        ports[name] = CPort(
            name=name, size=len(named), columns=named, units=tuple(units), meaning=meaning
        )
    return ports | _jacobian_ports(motion, ports) | _product_ports(motion, ports)


def _product_ports(motion: Motion, ports: Mapping[str, CPort]) -> dict[str, CPort]:
    """Return ports of directions and factors, and of the products with them."""
    known: Mapping[str, Port] = motion.runner.known_ports
    steps = {name: known[direction_name(name)] for name in (*motion.ports.motion, "force")}
    described: list[tuple[Port, str]] = [
        (port, f"direction of {name}") for name, port in steps.items()
    ]
    for output in ("force", "acceleration"):
        described.append((known[factor_of(output)], f"factors w of {output}"))
        result = ports[output]
        product = Port(name=directional_name(output), columns=result.columns, units=result.units)
        described.append((product, f"change of {output} along the direction d, J d"))
    for name, port in steps.items():
        units = tuple(f"1/({unit})" for unit in port.units)
        for word, meaning in (("slope", "w^T J"), ("bend", "gradient of w^T J d")):
            product = Port(name=jacobian_name(word, name), columns=port.columns, units=units)
            described.append((product, f"{meaning} by {name}, times the unit of what w weighs"))
    return {
        port.name: CPort(
            name=port.name, size=port.size, columns=port.columns, units=port.units, meaning=meaning
        )
        for port, meaning in described
    }


def _jacobian_ports(motion: Motion, ports: Mapping[str, CPort]) -> dict[str, CPort]:
    """Return ports of Jacobians, by columns.

    Displacements of positions have the components of velocities.
    """
    displacements = {
        "position": replace(
            ports["velocity"],
            units=tuple(u.removesuffix("/s") for u in motion.ports.velocity.units),
        )
    }
    displacements |= {
        "q": replace(ports["v"], units=tuple(unit.removesuffix("/s") for unit in ports["v"].units))
    }
    jacobians = {}
    for output in ("q", "v", "a", "force", "closure_force", "acceleration"):
        for name in (*motion.ports.motion, "force", "theta"):
            rows = displacements.get(output, ports[output])
            columns = displacements.get(name, ports[name])
            jacobians[jacobian_name(output, name)] = _jacobian_port(output, rows, name, columns)
    return jacobians


def _jacobian_port(output: str, rows: CPort, name: str, columns: CPort) -> CPort:
    """Return the port of the Jacobian of an output by an input, by columns."""
    names = [f"{row} / {column}" for column in columns.columns for row in rows.columns]
    units = [f"({row})/({column})" for column in columns.units for row in rows.units]
    return CPort(
        name=jacobian_name(output, name),
        size=len(names),
        columns=tuple(names),
        units=tuple(units),
        meaning=f"Jacobian of {output} by {name}, by columns",
    )
