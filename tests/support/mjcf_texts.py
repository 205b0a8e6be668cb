"""An MJCF that has everything Tauloop reads."""

from __future__ import annotations

#: Everything that is carried over, in one machine: every way to turn a frame, every joint, solids,
#: defaults, frames.
EVERYTHING = """<mujoco model="every thing">
<compiler angle="degree" eulerseq="zxY" meshdir="nowhere"/>
<option timestep="0.001" gravity="0.5 0 -9.7"/>
<default>
 <geom density="500" rgba="1 0 0 1"/>
 <joint damping="0.1"/>
 <motor gear="3"/>
 <default class="arm"><joint axis="0 1 0" armature="0.01"/>
  <default class="wrist"><joint type="slide"/></default>
 </default>
</default>
<worldbody>
 <geom type="plane" size="1 1 1"/>
 <light pos="0 0 3"/>
 <body name="a" pos="0 0 1" quat="1 2 3 4" childclass="arm">
  <joint name="ja" range="-90 90" frictionloss="0"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0.1" size="0.02"/>
  <body name="b" pos="0.3 0 0" euler="10 20 30">
   <joint name="jb" pos="0.1 0 0.2" ref="20" axis="0 1 1"/>
   <joint name="js" class="wrist" axis="1 0 1" ref="0.1" springref="0.2" stiffness="5"/>
   <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0" zaxis="1 1 0"/>
   <geom type="ellipsoid" size="0.1 0.02 0.03" pos="0.1 0 0.2" axisangle="1 2 0 25" mass="0.7"/>
   <geom type="sphere" size="0.05" mass="0"/>
   <site name="tip" pos="0.2 0 0" xyaxes="0 1 0 -1 0.2 0"/>
   <frame pos="0.1 0.2 0.3" euler="0 0 90">
    <frame quat="0 1 0 0"><geom type="cylinder" size="0.03 0.1" pos="0 0.1 0"/></frame>
    <body name="d" pos="0 0 0.1"><joint name="jd" type="ball" pos="0 0.1 0" damping="0.2"/><geom size="0.06"/></body>
   </frame>
  </body>
 </body>
 <body name="c" pos="0.5 0 1" euler="0 40 0">
  <inertial mass="1.5" pos="0 0 0.1" fullinertia="0.1 0.2 0.25 0.01 0.02 0.03"/>
  <joint name="jc" type="free" armature="0.3"/>
  <geom type="mesh" mesh="absent"/>
 </body>
 <body name="e" pos="0 1 0"><joint name="e_joint1" axis="0 0 1"/><joint type="slide"/>
  <inertial mass="1" pos="0 0 0" quat="1 1 0 0" diaginertia="0.1 0.2 0.15"/>
  <body name="f" pos="0 0.2 0"><inertial mass="0.3" pos="0 0 0.1" diaginertia="0.01 0.02 0.015"/></body>
 </body>
</worldbody>
<equality>
 <connect name="loop" body1="b" body2="c" anchor="0.2 0 0.1"/>
 <weld name="weld" body1="d" body2="e" relpose="0.1 0.2 0.3 1 2 3 4"/>
 <weld name="initial" body1="f" body2="a"/>
 <connect name="points" site1="tip" site2="other"/>
 <joint name="gear" joint1="jb" joint2="ja" polycoef="0.1 2 0 0 0"/>
 <tendon name="belt" tendon1="both" tendon2="one" polycoef="0.2 3 0 0 0"/>
 <joint name="held" joint1="js" polycoef="0.05 0 0 0 0"/>
 <connect name="idle" body1="a" body2="c" anchor="0 0 0" active="false"/>
</equality>
<tendon><fixed name="both"><joint joint="ja" coef="2"/><joint joint="jb" coef="-1"/></fixed>
 <fixed name="one"><joint joint="jb" coef="0.5"/></fixed></tendon>
<actuator>
 <motor name="m" joint="ja" ctrlrange="-5 5"/>
 <general name="g" tendon="both" gear="4" forcerange="-2 2"/>
 <position name="p" joint="js" kp="100"/>
 <general name="servo" joint="e_joint1" gaintype="fixed" gainprm="5"
  biastype="affine" biasprm="0 -5 0"/>
 <motor name="ball" joint="jd" gear="1 0 0"/>
</actuator>
</mujoco>
"""

EVERYTHING = EVERYTHING.replace(
    "<geom size", '<site name="other" pos="0 0.1 0" euler="30 0 0"/><geom size'
)
