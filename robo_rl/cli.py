"""The ``robo-rl`` command: finds the subcommand, parses its arguments, prints its errors as sentences."""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import os
import select
import signal
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping
from pathlib import Path

from robo_rl import console  # notes when the process began
from robo_rl.files.escaping import terminal
from robo_rl.files.suggestions import did_you_mean

STDOUT = 1
OBJECTS = 50_000
"""New objects between two collections of garbage. With Python's 700, a quarter of the time that torch takes to load
goes into looking for garbage among what it is made of."""
GROUPS = {
    "train": {
        "tasks": "list tasks and robots",
        "train": "train a policy on a task",
        "why": "say why a training does not learn, and what to try",
        "resume": "continue a training that was interrupted",
        "demonstrate": "record a task's script, to learn from",
        "demos": "list, check, replay and convert demonstrations: LeRobotDataset v3, robomimic",
        "learn": "learn while a robot runs, from what it does and from an operator who takes over",
        "reset-states": "store states on the way to success, where episodes of a training begin",
        "distill": "train a policy that a robot can run to imitate a teacher in simulation",
    },
    "look": {
        "play": "watch a policy, in the browser or as a video file",
        "evaluate": "run a policy for many episodes and report success rate and error with confidence intervals",
        "transfer": "run a policy in other simulators and beyond the ranges of its training",
        "report": "write an HTML report of a policy with plots, tables and video",
        "zoo": "list the trained policies that come with robo-rl",
    },
    "export": {
        "export": "write a trained policy as one self-describing .onnx file",
        "adopt": "take over a policy of another trainer: mjlab, Isaac Lab, rsl_rl, stable-baselines3, legged_gym",
        "inspect": "show the contract of a policy file: signals, commands, limits",
        "verify": "check that a policy file reproduces the trained policy",
        "sign": "sign a policy file, so that robots can tell that it is yours",
        "keys": "make a pair of keys to sign policy files with",
        "compress": "distill a policy into a smaller one that fits a microcontroller's flash",
        "firmware": "compile a policy file to C for a microcontroller",
        "pull-weights": "make a policy file of what a microcontroller has learnt",
    },
    "run": {
        "run": "run a policy on a robot, through the driver for its own protocol",
        "driver": "check a driver, your own or an included one, against time: slow, refused, late, paused, stopped",
        "ros": "run a policy or a simulated robot as a ROS 2 node, or operate a running node",
        "doctor": "check a robot's messages, or its computer, against a policy file, before the motors are enabled",
        "emulate": "emulate a robot that speaks its own protocol",
        "link": "listen to a microcontroller that runs a policy, or fetch what it has learnt",
        "record": "record a simulated robot in the log format of a real one",
        "replay": "rerun a recorded session and find the first difference",
    },
    "robots": {
        "robots": "show robots: figures, sources, pictures",
        "new": "make a project for a robot of your own: card, task, test",
        "sysid": "identify a robot's parameters from a recorded walk or flight",
        "retrain": "identify a robot from its logs, and train its policy again for it",
    },
    "many runs": {
        "sweep": "train many policies: seeds, settings, robots and tasks, on one computer or many",
        "work": "do one job of a sweep",
        "plan": "predict how long a training takes on many processes, and what limits it",
        "runs": "list the runs in a folder",
        "compare": "compare runs of several settings over their seeds",
        "bench": "measure simulation speed on this machine, and compare with other simulators",
    },
}
"""Commands by what a user does with them, in the order of a user's path."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
FOLDERS = ("training", "looking", "exporting", "running", "own_robots", "many_runs")
"""Of ``robo_rl/commands``, in the order of the groups."""
ROOMS = {name: folder for folder, group in zip(FOLDERS, GROUPS.values(), strict=True) for name in group}


def _lines(group: Mapping[str, str]) -> str:
    """Help for each command, in lines that fit a terminal of 80 columns."""
    return "\n".join(
        textwrap.fill(text, 79, initial_indent=f"  {name:<12} ", subsequent_indent=15 * " ")
        for name, text in group.items()
    )


USAGE = f"""usage: robo-rl COMMAND [OPTIONS]

Train a policy in simulation, export it as one file, verify it, and run it on a
robot.

{chr(10).join(f"{title}:{chr(10)}{_lines(group)}" for title, group in GROUPS.items())}

robo-rl COMMAND --help shows the options of a command; --json prints one JSON
object on the last line of stdout.
To start:  robo-rl train quadrotor-hover"""


def main(arguments: list[str] | None = None) -> None:
    """Entry point; exits with 0, with 1 when a check failed or an input was refused, with 2 on wrong usage."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters shows question marks
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    if name == "--version":
        from importlib.metadata import version

        print(f"robo-rl {version('robo-rl')}")
        return
    if name not in COMMANDS:
        meant = did_you_mean(name, COMMANDS)
        between = "\n" if meant else "; "
        text = f"robo-rl: '{name}' is not a command{meant}{between}robo-rl --help lists the commands"
        print(terminal(text), file=sys.stderr)
        sys.exit(2)
    gc.set_threshold(OBJECTS, 20, 20)
    atexit.register(gc.freeze)  # so that the interpreter's last collections need not go through all of torch: 0.3 s
    try:
        import tyro

        module = importlib.import_module(f"robo_rl.commands.{ROOMS[name]}.{name.replace('-', '_')}")
        command = module.command(rest) if hasattr(module, "command") else module.main
        name_words(command)
        with console.few_lines():
            sys.exit(tyro.cli(command, prog=f"robo-rl {name}", args=rest, config=(tyro.conf.FlagCreatePairsOff,)))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.split(".")[0] == "robo_rl":
            raise
        print(f"robo-rl {name} needs the package '{missing.name}': pip install 'robo-rl[train]'", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(f"robo-rl {name}: stopped", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError) as error:  # all our refusals are ValueErrors
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # so that the last flush is quiet too
            sys.exit(128 + signal.SIGPIPE)  # as a shell reports it
        print(terminal(f"robo-rl {name}: {_sentence(error)}"), file=sys.stderr)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        told = terminal(str(error).splitlines()[0] if str(error) else "MemoryError")
        print(f"robo-rl {name}: there is not enough memory ({told}); expected fewer environments", file=sys.stderr)
        sys.exit(1)


def name_words(command: Callable[..., object]) -> None:
    """Have usage and errors call the words without an option by their names (TASK, RUN), not by their type (STR)."""
    import tyro

    function = command.func if isinstance(command, functools.partial) else command
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        if typing.get_origin(hint) is typing.Annotated and hint.__origin__ in (str, Path):
            function.__annotations__[name] = typing.Annotated[hint, tyro.conf.arg(metavar=name.upper())]


def _sentence(error: Exception) -> str:
    """What an error says; of the system's own errors the file first, as of all others."""
    if type(error) is OSError or (isinstance(error, OSError) and type(error).__module__ == "builtins"):
        return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    return str(error)


def _lacks_memory(error: Exception) -> bool:
    """Whether it is Python's, torch's or CUDA's error for memory that there is not."""
    words = ("can't allocate memory", "out of memory")
    return isinstance(error, MemoryError) or any(each in str(error) for each in words)


def _nobody_reads() -> bool:
    """Whether the one at the other end of stdout, like ``head``, has seen enough."""
    output = select.poll()
    output.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in output.poll(0))


if __name__ == "__main__":
    main()
