"""The ``robo-rl`` command: finds the subcommand, parses its arguments, prints its errors as sentences."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import select
import signal
import sys

from robo_rl import console  # noqa: F401 (notes when the process began)
from robo_rl.escaping import terminal

STDOUT = 1
COMMANDS = {
    "tasks": "list tasks and robots",
    "robots": "show robots: figures, sources, pictures",
    "train": "train a policy on a task",
    "resume": "continue a training that was interrupted",
    "evaluate": "fly a policy many times and report success and error with confidence",
    "transfer": "fly a policy in other engines and beyond the ranges of its training",
    "play": "watch a policy fly, in the browser or as a video file",
    "export": "write a trained policy as one self-describing .onnx file",
    "inspect": "show what a policy file reads, commands and promises",
    "verify": "prove that a policy file does what was trained",
    "distill": "teach a policy that a robot can run what a teacher in simulation does",
    "compress": "distil a policy into a smaller one that fits a microcontroller's flash",
    "firmware": "compile a policy file to C for a microcontroller",
    "ros": "run a policy on a robot through ROS 2, or a stand-in robot",
    "doctor": "hold what a robot sends against a policy file, before a motor has torque",
    "record": "record a simulated robot under a policy, as a real one is recorded",
    "sysid": "find a robot's friction, gains, latency and load from a recorded walk",
    "zoo": "list the trained policies that come with robo-rl",
    "replay": "fly a recorded session again and find where it comes out otherwise",
    "report": "make a page with the plots, tables and video of a run",
    "bench": "measure speed on this machine, against peers",
}

USAGE = f"""usage: robo-rl COMMAND [OPTIONS]

Train a policy in simulation, export it as one file, prove it, and run it on a robot.

commands:
{chr(10).join(f"  {name:<10} {text}" for name, text in COMMANDS.items())}

robo-rl COMMAND --help explains a command; with --json it prints one JSON object on the last line of stdout.
To begin:  robo-rl train quadrotor-hover"""


def main(arguments: list[str] | None = None) -> None:
    """Entry point; exits with 0, with 1 when a check failed or an input was refused, with 2 on wrong usage."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    name, *rest = arguments
    if name == "--version":
        from importlib.metadata import version

        print(f"robo-rl {version('robo-rl')}")
        return
    if name not in COMMANDS:
        print(terminal(f"robo-rl: there is no command '{name}'\n\n{USAGE}"), file=sys.stderr)
        sys.exit(2)
    atexit.register(gc.freeze)  # so that the interpreter's last collections need not go through all of torch: 0.3 s
    try:
        import tyro

        module = importlib.import_module(f"robo_rl.commands.{name}")
        command = module.command(rest) if hasattr(module, "command") else module.main
        sys.exit(tyro.cli(command, prog=f"robo-rl {name}", args=rest, config=(tyro.conf.FlagCreatePairsOff,)))
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.split(".")[0] in ("robo_rl", "sim", "controllers", "deploy"):
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
        print(terminal(f"robo-rl {name}: {error}"), file=sys.stderr)
        sys.exit(1)


def _nobody_reads() -> bool:
    """Whether the one at the other end of stdout, like ``head``, has seen enough."""
    output = select.poll()
    output.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in output.poll(0))


if __name__ == "__main__":
    main()
