"""Suggestions of similar names for misspelled ones, and for names that other libraries use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: Maximum length of a compared word; names are short.
MAX_LENGTH = 60
#: Maximum number of compared names; a machine has hundreds of names.
MAX_NAMES = 2000
#: Names of other libraries (Pinocchio, Drake, MuJoCo, SciPy, scikit-learn, Robotics Toolbox) and
#: common guesses, each with Tauloop's names, in lower case. Names with a dot are full
#: paths and are suggested everywhere; the others only where they exist.
PEER_NAMES: Mapping[str, tuple[str, ...]] = {
    # Functions and methods
    "rnea": ("inverse_dynamics",),
    "rne": ("inverse_dynamics",),
    "mj_inverse": ("inverse_dynamics",),
    "aba": ("forward_dynamics",),
    "mj_forward": ("forward_dynamics",),
    "accel": ("forward_dynamics",),
    "crba": (
        "mass_matrix",
        "tauloop.Model(machine).mass_matrix",
    ),
    "inertia": ("mass_matrix",),
    "mj_fullm": ("mass_matrix",),
    "nle": ("bias",),
    "nonlinear_effects": ("bias",),
    "coriolis": ("bias",),
    "coriolis_matrix": ("bias",),
    "generalized_gravity": ("gravity_forces",),
    "gravload": ("gravity_forces",),
    "gravity_vector": ("gravity_forces",),
    "energy": ("kinetic_energy",),
    "frame_placement": ("tool_pose",),
    "frame_pose": ("tool_pose",),
    "end_effector": ("tool_pose",),
    "regressor": ("model.platform.regressor",),
    "joint_torque_regressor": ("model.platform.regressor",),
    "frame_jacobian": ("jacobian",),
    "tool_jacobian": ("model.platform.tool_jacobian",),
    "fk": ("forward_kinematics",),
    "fkine": ("forward_kinematics",),
    "ik": ("inverse_kinematics",),
    "ikine": ("inverse_kinematics",),
    "jacob0": ("jacobian",),
    "jac": ("jacobian",),
    "load_urdf": ("load",),
    "load_model": ("load",),
    "load_machine": ("load",),
    "from_urdf": ("tauloop.load",),
    "buildmodelfromurdf": ("load",),
    "add_models": ("load",),
    "save": (
        "convert",
        "dumps",
    ),
    "dump": ("dumps",),
    "to_yaml": ("tauloop.dumps",),
    "write": (
        "convert",
        "dumps",
    ),
    "machines": ("shipped_machines",),
    "list_machines": ("shipped_machines",),
    "available_machines": ("shipped_machines",),
    "show": (
        "describe",
        "view",
    ),
    "info": ("describe",),
    "plan_trajectory": (
        "plan_stroke",
        "plan_path",
    ),
    "solve_ivp": ("simulate",),
    "integrate": ("simulate",),
    "fit": (
        "identify",
        "calibrate",
    ),
    "estimate": (
        "identify",
        "calibrate",
    ),
    # Sizes and contents of models
    "nq": ("model.topology.coordinate_names",),
    "nv": ("model.topology.velocity_names",),
    "names": ("model.topology.coordinate_names",),
    "neutral": ("model.assembly.q",),
    "home": ("model.assembly.q",),
    "reference": ("model.assembly.q",),
    "inertias": ("model.mechanism.bodies",),
    "frames": ("model.mechanism.bodies",),
    "joints": (
        "actuators",
        "model.mechanism.joints",
    ),
    "mass": ("inertia",),
    # Results
    "torque": ("force",),
    "torques": ("force",),
    "tau": ("force",),
    "success": ("status",),
    "ok": ("status",),
    "passed": ("status",),
    "is_ok": ("status",),
    "pose": ("platform",),
    "position": (
        "pose",
        "start",
        "platform",
    ),
    "df": ("to_pandas",),
    "to_dataframe": ("to_pandas",),
    "to_dict": ("as_dict",),
    "to_numpy": (
        "to_pandas",
        "to_xarray",
    ),
    "to_json": ("write_json",),
    # Arguments
    "robot": ("machine",),
    "model": ("machine",),
    "mechanism": ("machine",),
    "q": (
        "position",
        "actuators",
        "pose",
    ),
    "x": (
        "position",
        "pose",
    ),
    "qpos": (
        "position",
        "actuators",
        "pose",
    ),
    "joint_positions": (
        "position",
        "actuators",
    ),
    "motors": ("actuators",),
    "target": (
        "pose",
        "end",
    ),
    "goal": (
        "end",
        "pose",
    ),
    "q0": (
        "pose",
        "start",
    ),
    "x0": (
        "pose",
        "start",
        "initial",
    ),
    "initial_state": (
        "pose",
        "start",
    ),
    "init": (
        "initial",
        "pose",
        "start",
    ),
    "v": ("velocity",),
    "qd": ("velocity",),
    "dq": ("velocity",),
    "qvel": ("velocity",),
    "a": ("acceleration",),
    "qdd": ("acceleration",),
    "ddq": ("acceleration",),
    "qacc": ("acceleration",),
    "u": ("force",),
    "effort": ("force",),
    "external_force": ("wrench",),
    "f_ext": ("wrench",),
    "t": ("duration",),
    "time": ("duration",),
    "t_final": ("duration",),
    "t_end": ("duration",),
    "tf": ("duration",),
    "t_span": ("duration",),
    "t_max": ("duration",),
    "dt": (
        "fixed_step",
        "rate",
    ),
    "time_step": (
        "fixed_step",
        "rate",
    ),
    "timestep": (
        "fixed_step",
        "rate",
    ),
    "step_size": ("fixed_step",),
    "method": (
        "integrator",
        "estimator",
        "search",
    ),
    "solver": (
        "integrator",
        "estimator",
        "search",
    ),
    "model_type": ("estimator",),
    "waypoints": (
        "via",
        "points",
    ),
    "profile": ("law",),
    "max_speed": (
        "max_velocity",
        "speed",
    ),
    "vmax": ("max_velocity",),
    "v_max": ("max_velocity",),
    "amax": ("max_acceleration",),
    "a_max": ("max_acceleration",),
    "max_accel": ("max_acceleration",),
    "max_time": (
        "max_duration",
        "duration",
    ),
    "frequency": ("rate",),
    "fs": ("rate",),
    "sample_rate": ("rate",),
    "sampling_rate": ("rate",),
    "kp": ("bandwidth",),
    "gains": ("bandwidth",),
    "tol": ("tolerance",),
    "n_jobs": ("workers",),
    "n_workers": ("workers",),
    "threads": ("workers",),
    "random_state": ("seed",),
    "rng": ("seed",),
    "limits": (
        "ranges",
        "bounds",
    ),
    "range": ("ranges",),
    "bounds": ("ranges",),
    "grid": ("resolution",),
    "n": (
        "states",
        "count",
        "resolution",
    ),
    "n_samples": (
        "states",
        "count",
    ),
    "spacing": ("resolution",),
    "log": ("logs",),
    "data": (
        "logs",
        "log",
        "measurements",
    ),
    "dataset": (
        "logs",
        "log",
        "measurements",
    ),
    "readings": ("measurements",),
    "poses": ("measurements",),
    "out": (
        "folder",
        "target",
        "path",
    ),
    "output": (
        "folder",
        "target",
        "path",
    ),
    "directory": ("folder",),
    "output_dir": ("folder",),
    "filename": (
        "target",
        "path",
        "name_or_path",
    ),
    "file": (
        "target",
        "path",
        "name_or_path",
    ),
    "com": ("center",),
    "center_of_mass": ("center",),
    "m": ("mass",),
    "formulation": ("tauloop.Model(machine, formulation=...)",),
    "evaluator": ("tauloop.Model(machine, evaluator=...)",),
}


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question ``did you mean a or b?``; an empty text if no name is similar."""
    known_names = list(known)[:MAX_NAMES]
    if len(word) > MAX_LENGTH:
        return ""
    names = peer_names(word, known_names)
    if not names:
        import difflib

        candidates = {name.lower(): name for name in known_names}
        near = difflib.get_close_matches(word.lower(), candidates, n=2, cutoff=0.6)
        names = [candidates[name] for name in near]
    return f"did you mean {' or '.join(names)}?" if names else ""


def peer_names(word: str, known: Iterable[str]) -> list[str]:
    """Return at most two of Tauloop's names for a name of another library.

    Args:
        word: the name in the other library.
        known: the names that exist in this context.
    """
    known = {*known}
    names = PEER_NAMES.get(word.lower(), ())
    complete = [name for name in names if "." in name]
    return [name for name in names if name in known][:2] or complete[:2]
