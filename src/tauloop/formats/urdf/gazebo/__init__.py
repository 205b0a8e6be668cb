"""The element ``<gazebo>`` of a URDF: settings of links and joints, and loop-closing joints."""
