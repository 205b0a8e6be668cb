"""Detection of faults in logs: wrong channels, and forces that no term of the model describes."""
