"""Assessment of calibrations: identifiability before a fit; accuracy, residuals and validation after it."""
