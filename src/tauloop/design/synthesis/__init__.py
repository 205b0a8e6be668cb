"""Dimensional synthesis: machine files that meet a task, from bounds of their parameters.

Modules: the task file (`task`), measures of a pose (`pose_measures`), populations in compiled code
(`population`), violations and objectives (`evaluation`), stiffness, modes and errors (`elastic`), the
search (`search`), gradients (`polishing`), and the chosen machines (`designs`).
"""
