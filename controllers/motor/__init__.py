"""Classical controllers of electric motors: baselines for learnt policies, and the model that a policy's guard has."""

from robo_rl.controllers.motor.current import Deadbeat, FieldOriented
from robo_rl.controllers.motor.model import PmsmModel
from robo_rl.controllers.motor.speed import DutyPI, DutyWindow, SpeedPI, SymmetricOptimum

__all__ = ["Deadbeat", "DutyPI", "DutyWindow", "FieldOriented", "PmsmModel", "SpeedPI", "SymmetricOptimum"]
