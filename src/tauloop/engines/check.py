"""Tauloop beside independent engines: inverse dynamics over random consistent states of a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tauloop.engines.motion import Motion
from tauloop.functions import Model
from tauloop.kinematics import random_states
from tauloop.mechanism.model import Actuator, Freedom, Joint, Mechanism, Rod
