"""The classical controller of multirotors: a baseline for learnt policies, and what lands the robot after a fault."""

from robo_rl.controllers.multirotor.avoidance import OrcaController, Pace, Surroundings, VoronoiController
from robo_rl.controllers.multirotor.facts import Multirotor, Rotor
from robo_rl.controllers.multirotor.fallback import Landing
from robo_rl.controllers.multirotor.geometric import Gains, GeometricController, Mixer
from robo_rl.controllers.multirotor.rates import RatesController

FALLBACK = Landing

__all__ = [
    "FALLBACK",
    "Gains",
    "GeometricController",
    "Landing",
    "Mixer",
    "Multirotor",
    "OrcaController",
    "Pace",
    "RatesController",
    "Rotor",
    "Surroundings",
    "VoronoiController",
]
