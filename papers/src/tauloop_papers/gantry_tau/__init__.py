"""Lyzell and Hovland: identification of the 5-dof Gantry-Tau by two runs of every motion."""
