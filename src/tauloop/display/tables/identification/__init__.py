"""Tables of identification and calibration."""
