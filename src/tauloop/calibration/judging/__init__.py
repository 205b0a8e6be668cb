"""Assessment of calibrations: identifiability, accuracy, residuals and validation."""
