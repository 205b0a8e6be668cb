"""Miller: the dynamics of NUWAR, by Hamilton's equations in the extended space."""
