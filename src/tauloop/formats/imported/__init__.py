"""Conversion of links and joints of other tools to elements of a machine: rods, welds, motors."""
