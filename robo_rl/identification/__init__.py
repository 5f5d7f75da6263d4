"""System identification: a robot's motors and load from a recorded walk.

The simulated robot follows the record as an observer: at every control step its state is drawn a little towards what
the sensors told, and what is left between them is the prediction's error (Ljung 1999, System Identification, prediction
error methods). The parameters that make it least are found by Gauss and Newton's method. ``observer`` follows, ``fit``
searches, ``judge`` tells whether the result may be believed, ``recorded`` reads logs.
"""

from robo_rl.identification.estimate import Unknown
from robo_rl.identification.fit import Identified, identify
from robo_rl.identification.judge import faults
from robo_rl.identification.observer import UNKNOWNS
from robo_rl.identification.recorded import IdentificationError, Record, walk

__all__ = ["UNKNOWNS", "IdentificationError", "Identified", "Record", "Unknown", "faults", "identify", "walk"]
