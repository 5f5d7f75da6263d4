"""The program, in URScript, that follows targets from RTDE's registers on the robot itself, and stops without them.

It counts controller steps (2 ms) in which the number of the command stays the same, and stops the arm when that lasts:
what silence does is decided on the robot, not here. A target beyond the policy's limits ends it too. Functions are
those of the "Script Manual, e-Series"; registers below 24 belong to field buses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TARGETS, NUMBER, TAKEN = 24, 24, 24
"""First of six input_double_registers with the target; input_int_register with the command's number, below 0 to end;
output_int_register with the number that was taken last."""
INPUTS = (*(f"input_double_register_{TARGETS + i}" for i in range(6)), f"input_int_register_{NUMBER}")
END = -1
"""The number that ends the program."""
PATIENCE = 0.1
"""s without a new command, after which the arm is stopped."""
LOOKAHEAD, GAIN = (0.03, 0.2), (100.0, 2000.0)
"""s, and no unit: what servoj takes."""
NAME = "robo_rl_follow"
TEMPLATE = f"""def {NAME}():
  lowest = {{lowest}}
  highest = {{highest}}
  furthest = {{furthest}}
  goal = get_actual_joint_positions()
  taken = read_input_integer_register({NUMBER})
  quiet = 0.0
  while quiet < {{patience}}:
    number = read_input_integer_register({NUMBER})
    if number < 0:
      break
    elif number == taken:
      quiet = quiet + get_steptime()
    else:
      here = get_actual_joint_positions()
      wanted = [{", ".join(f"read_input_float_register({TARGETS + i})" for i in range(6))}]
      i = 0
      while i < 6:
        if not (wanted[i] >= lowest[i] and wanted[i] <= highest[i] and norm(wanted[i] - here[i]) <= furthest[i]):
          textmsg("{NAME}: a target is out of bounds, joint ", i)
          stopj({{deceleration}})
          halt
        end
        i = i + 1
      end
      goal = wanted
      taken = number
      quiet = 0.0
      write_output_integer_register({TAKEN}, taken)
    end
    servoj(goal, t=get_steptime(), lookahead_time={{lookahead}}, gain={{gain}})
  end
  stopj({{deceleration}})
end
"""


@dataclass(frozen=True)
class Following:
    """What the program is told."""

    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    """rad, of targets."""
    furthest: tuple[float, ...]
    """rad from where a joint is to its target, at most."""
    lookahead: float
    """s by which the arm follows later."""
    gain: float
    deceleration: float
    """rad/s^2 of the stop."""
    patience: float = PATIENCE

    def text(self) -> str:
        """As it is sent."""
        lists = {name: _list(getattr(self, name)) for name in ("lowest", "highest", "furthest")}
        names = ("lookahead", "gain", "deceleration", "patience")
        return TEMPLATE.format(**lists, **{name: f"{getattr(self, name):.4f}" for name in names})


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{value:.6f}' for value in values)}]"
