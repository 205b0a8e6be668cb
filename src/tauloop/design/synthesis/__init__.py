"""Dimensional synthesis: machine files that meet a task, from bounds of their parameters.

Modules: the task file (`task`), measures of a pose (`pose_measures`), populations in compiled code
(`population`), violations and objectives (`evaluation`), forces of actuators (`actuator_scores`),
stiffness, modes and errors (`elastic`), several processes (`sharing`), the search (`search`), local
searches with gradients (`polishing`) and without (`polling`), and the chosen machines (`designs`).
"""
