"""Dressler, Schiffer and Robertsson, section 3: the Gantry-Tau is calibrated with a laser tracker."""
