"""Functions of a machine as programs: motion, forces, regressors, tools, observers."""
