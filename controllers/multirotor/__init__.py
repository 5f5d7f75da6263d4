"""The classical controller of multirotors: a baseline for learnt policies, and what lands the robot after a fault."""

from controllers.multirotor.facts import Multirotor, Rotor
from controllers.multirotor.fallback import Landing
from controllers.multirotor.geometric import Gains, GeometricController, Mixer
from controllers.multirotor.rates import RatesController

FALLBACK = Landing

__all__ = ["FALLBACK", "Gains", "GeometricController", "Landing", "Mixer", "Multirotor", "RatesController", "Rotor"]
