"""From links and joints of other tools to the elements of a machine: rods, welded links, motors."""
