"""Maps between joints and the motors of parallel mechanisms, such as ankles. No display is imported."""
