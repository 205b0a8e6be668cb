"""A servo motor with its current loop as an FMU of version 3, made by PythonFMU3: nothing of Tauloop is in it.

    python -m pythonfmu3 build -f servo_motor.py

writes `ServoMotor.fmu`. L di/dt = u - R i - k w in the winding; u = K_p (i_asked - i) + z, dz/dt =
K_i (i_asked - i) in the current loop, within the voltage of the drive; torque k i. K_p = L b and
K_i = R b with the loop's bandwidth b.
"""

from pythonfmu3 import Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability, Unit

#: Longest step inside, s.
INNER = 20e-6


class ServoMotor(Fmi3Slave):
    """Torque that is asked for and speed in, torque out."""

    def __init__(self, **kwargs):
        """Variables, their units and starts."""
        super().__init__(**kwargs)
        self.description = "servo motor with current loop"
        self.time = 0.0
        self.asked, self.speed, self.torque = 0.0, 0.0, 0.0
        self.resistance, self.inductance, self.constant = 0.4, 2e-3, 0.7
        self.bandwidth, self.voltage = 3000.0, 320.0
        self.current, self.memory = 0.0, 0.0
        torque = {"kg": 1, "m": 2, "s": -2}
        self.register_units(
            [
                Unit(name="N.m", **torque),
                Unit(name="rad/s", rad=1, s=-1),
                Unit(name="A", A=1),
            ]
        )
        independent = {
            "causality": Fmi3Causality.independent,
            "variability": Fmi3Variability.continuous,
        }
        self.register_variable(Float64("time", **independent))
        for name, unit in (("asked", "N.m"), ("speed", "rad/s")):
            self.register_variable(Float64(name, causality=Fmi3Causality.input, unit=unit))
        self.register_variable(Float64("torque", causality=Fmi3Causality.output, unit="N.m"))
        self.register_variable(Float64("current", causality=Fmi3Causality.output, unit="A"))
        for name in ("resistance", "inductance", "constant", "bandwidth", "voltage"):
            self.register_variable(
                Float64(
                    name, causality=Fmi3Causality.parameter, variability=Fmi3Variability.tunable
                )
            )

    def rates(self, current, memory):
        """Of current and integral."""
        wanted = self.asked / self.constant - current
        voltage = self.inductance * self.bandwidth * wanted + memory
        applied = max(-self.voltage, min(self.voltage, voltage))
        growth = self.resistance * self.bandwidth * wanted if applied == voltage else 0.0
        return (
            applied - self.resistance * current - self.constant * self.speed
        ) / self.inductance, growth

    def do_step(self, current_time, step_size):
        """Heun's steps of equal length."""
        count = max(1, round(step_size / INNER))
        length = step_size / count
        for _ in range(count):
            i, z = self.current, self.memory
            first = self.rates(i, z)
            second = self.rates(i + length * first[0], z + length * first[1])
            self.current = i + length / 2 * (first[0] + second[0])
            self.memory = z + length / 2 * (first[1] + second[1])
        self.torque = self.constant * self.current
        return True
