"""Lyzell and Hovland: the 5-dof Gantry-Tau is identified by two runs of every motion."""
