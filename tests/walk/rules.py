"""How the walk differs from a reader: the only place that says so. A command that no rule names is run as written.

Trainings and measurements are cut short by documented options alone. What needs hardware, another computer, a network
or hours is not run, with the reason; ``test_walk`` checks that no rule is left over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from walk.pages import Command

EPISODES = "--episodes 20"
PPO = "--ppo.updates 1 --ppo.environments 64 --episodes 4"

SAC = "--sac.updates 2 --sac.first 100 --episodes 4"


@dataclass(frozen=True)
class Rule:
    """For the commands whose ``key`` matches the whole pattern; the first such rule counts."""

    pattern: str
    before: str = ""
    """What makes files that a reader has: run first."""
    add: str = ""
    """Options that cut it short."""
    replace: tuple[str, str] = ("", "")
    """What a reader has to replace, and by what."""
    take: tuple[str, str] = ("", "")
    """What a reader replaces by what a command above has printed, and its pattern."""
    until: str = ""
    """It goes on until it is stopped: by Ctrl-C when it has printed this."""
    stays: bool = False
    """After it has printed ``until`` it goes on until the page's end, for the commands below need it."""
    says: tuple[tuple[str, float, float], ...] = ()
    """Patterns with a number each, and the interval in which the page says that it lies."""
    fails: bool = False
    """The page says that it exits with 1."""
    skip: str = ""
    """Why it is not run."""


SUCCESS = r"([\d.]+)% of [\d,]+ held-out episodes"
ANY = r"(?:success|no failure|no fall) +([\d.]+)%"
HARDWARE = "needs the robot"
SETUP = "sets up what these tests run in: make test has done it"
EXTRAS = "fetches packages; setup-dev installs all extras, and tests/test_promises.py holds their names"
CLOCK = "keeps deadlines of the wall clock, which a busy computer does not; "
PLANS = CLOCK + "tests/robo_rl/commands/test_plan_commands.py runs the page's commands"
LONG = "takes hours"
CLUSTER = "needs several computers"
ROS_SYSTEM = "needs a sourced ROS 2: its tools are not on PyPI"

ROS_TESTS = "docs/ros.md walks a session in ROS 2; tests/ros has these nodes"
DOMAIN = "77"
"""Of the ROS 2 messages."""

CONNECTED = "without commands it"
"""What ``robo-rl run`` says when it has found its robot."""
ADOPT = r"bring-your-policy\.md: robo-rl adopt "
FOREIGN = "python $ROOT/tests/walk/foreign.py "

CIRCLE = {"circle.py": ("docs/own-task.md", "python", 0)}
RATES = {"rates.toml": ("docs/scale.md", "toml", 0)}
FILES = {
    "docs/own-task.md": CIRCLE,
    "docs/bundle.md": CIRCLE,
    "docs/scale.md": RATES,
    "docs/commands.md": {**CIRCLE, **RATES},
}
"""Files that a reader writes: name; page, language and number of the block."""


BUNDLE = "cp $ROOT/robo_rl/zoo/quadrotor-hover.onnx policy.onnx"
FEWER = "sed -i 's/seeds = 10/seeds = 2/; s/episodes = 1000/episodes = 20/' rates.toml"
BEFORE = {
    "docs/run-on-a-robot.md": (BUNDLE,),
    "docs/bundle.md": (
        "robo-rl train ./circle.py:Circle --episodes 0",
        "robo-rl export runs/quadrotor-circle-seed0-1 --out policy.onnx",
    ),
    "docs/firmware.md": (BUNDLE,),
    "docs/robot-computer.md": (BUNDLE,),
    "docs/robots/dynamixel.md": (
        "robo-rl train arm-reach --robot so101 " + PPO,
        "robo-rl export runs/arm-reach-ppo-seed0-1 --out so101.onnx",
    ),
    "docs/operate.md": (BUNDLE, "cp policy.onnx hover.onnx", "cp $ROOT/robo_rl/zoo/quadrotor-track.onnx track.onnx"),
    "docs/ros.md": (BUNDLE,),
    "docs/scale.md": (BUNDLE, FEWER),
    "docs/signing.md": (BUNDLE,),
    "docs/tasks.md": (BUNDLE,),
    "docs/transfer.md": (BUNDLE,),
    "docs/commands.md": (
        BUNDLE,
        FEWER,
        "cp policy.onnx hover.onnx",
        "cp policy.onnx old.onnx",
        "cp policy.onnx other.onnx",
        "cp $ROOT/robo_rl/zoo/quadrotor-track.onnx track.onnx",
        "cp $ROOT/robo_rl/zoo/go2-flat.onnx walk.onnx",
        "cp $ROOT/robo_rl/zoo/go2-rough.onnx student.onnx",
        "robo-rl train go2-flat " + PPO,
        "robo-rl train ./circle.py:Circle --episodes 0",
        "robo-rl export runs/quadrotor-circle-seed0-1 --out circle.onnx",
        "robo-rl demonstrate arm-insert --episodes 4 --out shown.safetensors",
        "robo-rl reset-states arm-insert --states 4 --out states.safetensors",
        "robo-rl keys new ~/.robo-rl-key --name alice",
        "robo-rl record policy.onnx --out session.mcap --seconds 5",
    ),
}
"""What the other pages have made before, for pages that are read by themselves."""

SKETCHES = {
    "Task-v0": "tests/robo_rl/test_own_task.py makes it",
    "stable_baselines3": "benchmarks/walking_sb3.py and tests/robo_rl/test_modules.py do it; needs minutes",
    "/dev/ttyACM0": HARDWARE,
    "class OwnTracks": "examples/own_track/race.py is the whole of it",
    "class Bottle": "needs a user's mesh; tests/sim/plants/test_surroundings.py has such objects",
    "class Balance": "examples/own_kind/balance.py is the whole of it",
    '"scan": ranges': "a robot with a scan; tests/deploy does it",
    "NormalizeObservation.gymnasium.make": "a policy of another trainer; tests/robo_rl/test_adopt_wrappers.py does it",
    "VecNormalize|Sb3Env|actor.model": "stable-baselines3; tests/robo_rl/test_adopt_wrappers.py does it",
    "class Policy.AdoptedWalk": "needs the file that robo-rl adopt writes; tests/robo_rl/test_adopt.py does it",
    "WebsocketPolicyServer": "needs openpi; tests/deploy/robot/test_plans.py has such a server",
    "native=True": "needs the file of the commands below it; tests/deploy does it",
}
"""Python that is shown and not run, by a part of it: why."""

RULES = (
    # setting up, and what is not for one computer without a robot
    Rule(r".*: (make (demo|test|setup|setup-dev check)|\. \.venv/bin/activate)", skip=SETUP),
    Rule(r".*: pip wheel .*", skip="tests/test_wheel.py makes one, and installs it"),
    Rule(r".*: pip install .*", skip=EXTRAS),
    Rule(r".*: git clone .*", skip="fetches a repository"),
    Rule(r".*: docker .*", skip="needs Docker and its registry; tests/ros/test_workspace.py reads these files"),
    Rule(r".*: \(cd ros2_ws && colcon build\).*|.*: ros2 .*", skip=ROS_SYSTEM),
    Rule(r"ros\.md: (python3 -m venv --system-site|~/robo-rl/bin/pip|\(cd ros2_ws && \. /opt/ros).*", skip=ROS_SYSTEM),
    Rule(r"robot-computer\.md: (?!robo-rl).*", skip=ROS_SYSTEM),
    Rule(
        r"robots/(px4|f1tenth|dynamixel)\.md: robo-rl (train|export) .*",
        skip="needs the reader's own card; docs/own-robot.md trains such",
    ),
    Rule(
        r"legs\.md: robo-rl train dance\.py:Dance",
        skip="needs a clip of the reader's own; tests/sim/tasks/legged/test_track.py has one",
    ),
    Rule(
        r".*: robo-rl export .* --machine aarch64", skip="needs a cross compiler; tests/deploy/test_native.py uses it"
    ),
    Rule(
        r".*: robo-rl pull-weights .*",
        skip="needs a microcontroller's flash; tests/robo_rl/test_stream.py has its bytes",
    ),
    Rule(
        r".*: robo-rl link .*",
        skip="needs a microcontroller; tests/deploy/firmware/test_learning.py has its C behind a port",
    ),
    Rule(r"signing\.md: (for who|export ROS_SEC|ROS_SEC).*", skip=ROS_SYSTEM),
    Rule(r"ros\.md: ROBO_RL_FAULT_TABLE=.*", skip="writes the page; make test runs these tests"),
    Rule(r"operate\.md: ssh .*|.*: torchrun .*|.*--address auto.*", skip=CLUSTER),
    Rule(r".*--wandb .*|.*--mlflow .*", skip="needs a server; tests/robo_rl/test_trackers.py does it"),
    Rule(r".*--sac\.actors .*", skip="needs Ray; tests/robo_rl/algorithms/test_actors.py does it"),
    Rule(r"security\.md: python benchmarks/fuzz\.py.*|.*--episodes 1000000 .*", skip=LONG),
    Rule(r".*(--port |port:=)(/dev/tty(ACM0|USB0|AMA0)|eth0|radio:|192\.168|172\.16).*", skip=HARDWARE),
    Rule(r".*: lerobot-.*", skip=HARDWARE),
    Rule(r"commands\.md: robo-rl adopt .*", skip="needs files of other trainers; docs/bring-your-policy.md has them"),
    # policies of other trainers, which do not walk unless "mjlab" makes them
    Rule(ADOPT + r"policy\.onnx .*", before=FOREIGN + "mjlab", add="--episodes 4"),
    Rule(ADOPT + r"walk\.onnx .*", add="--episodes 4"),
    Rule(ADOPT + r".*model_1000\.pt .*", before=FOREIGN + "isaac_lab", add="--episodes 0"),
    Rule(ADOPT + r".*Isaac-Velocity.*", before=FOREIGN + "leapp", add="--episodes 0"),
    Rule(ADOPT + r"exported/policy\.onnx .*", before=FOREIGN + "unitree_rl_lab", add="--episodes 0"),
    Rule(ADOPT + r"motion\.pt .*--robot go2 .*", before=FOREIGN + "unitree_rl_gym", add="--episodes 0"),
    Rule(
        ADOPT + r"motion\.pt .*--robot g1 .*", skip="a file of a peer's; tests/robo_rl/test_adopt_recurrent.py has such"
    ),
    Rule(ADOPT + r"ppo_walk\.zip .*", before=FOREIGN + "stable_baselines3", add="--episodes 0"),
    Rule(ADOPT + r"so101-pick .*", before=FOREIGN + "lerobot"),
    Rule(r"bring-your-policy\.md: robo-rl train .*", add="--bc.updates 2 --episodes 4"),
    Rule(r"bring-your-policy\.md: robo-rl verify .*", add="--episodes 8 --min-success 0"),
    Rule(
        r"firmware\.md: \(cd crazyflie_app && make .*",
        skip="needs the firmware's sources, which the line above fetches",
    ),
    Rule(r".*: robo-rl run .*--steer .*", skip="needs a hand; tests/robo_rl/commands/test_steering.py runs it"),
    Rule(r"plans\.md: robo-rl (emulate plan-server|run|replay) .*", skip=PLANS),
    Rule(r".*: robo-rl learn arm-insert .*", add="--bc.updates 2", until="for the robot"),
    Rule(r".*: robo-rl learn runs/live", until="for the robot"),
    Rule(r"bring-up\.md: robo-rl ros install .*", skip="needs a calibration; tests/deploy/test_service.py does it"),
    Rule(r".*--passphrase", skip="asks at a terminal; tests/deploy/test_signing.py answers"),
    Rule(r"(manipulation\.md: robo-rl evaluate seeing\.onnx|legs\.md: robo-rl evaluate .*)", add=EPISODES),
    Rule(r"commands\.md: robo-rl retrain .*", skip="docs/retrain.md runs it, with a log that it records"),
    Rule(r"commands\.md: robo-rl ros (fault list|layout .*|messages)"),
    Rule(r"commands\.md: robo-rl ros .*", skip=ROS_TESTS),
    # a session in simulated time, which a busy computer keeps too
    Rule(r"(own-task|navigation)\.md: robo-rl ros twin .*", until="Ctrl-C ends"),
    Rule(r"(driving|ros)\.md: robo-rl ros twin( car\.onnx)?", until="Ctrl-C ends", stays=True),
    Rule(r"(driving|ros)\.md: robo-rl ros policy (car|policy)\.onnx .*", until="not configured yet", stays=True),
    Rule(r"driving\.md: robo-rl ros configure; .*"),
    Rule(r"ros\.md: robo-rl ros policy zoo:diff-nav .*", until="not configured yet"),
    Rule(
        r"ros\.md: robo-rl ros controllers .*", skip="needs ros2_control; tests/ros/test_controllers.py has a stand-in"
    ),
    Rule(r".*: robo-rl doctor .*--computer .*", skip=CLOCK + "tests/deploy/test_computer.py runs it"),
    Rule(r".*: robo-rl doctor .*--wiggle", skip=CLOCK + "tests/ros/test_walking_twin.py moves such joints"),
    Rule(r".*: robo-rl doctor (?!so101).*", skip=CLOCK + "tests/ros/test_doctor_on_a_twin.py runs it"),
    Rule(r"(operate|driving|manipulation|navigation|own-task|README)\.md: robo-rl ros .*", skip=ROS_TESTS),
    Rule(r"examples/own_kind/README\.md: robo-rl ros .*", skip=ROS_TESTS),
    Rule(r".*: python examples/run_on_robot\.py .*", skip=CLOCK + "tests/test_examples.py runs it"),
    Rule(r"driver\.md: robo-rl driver check .*", skip="takes minutes; tests/examples/test_own_driver.py runs it"),
    Rule(r"driver\.md: robo-rl run .*", until="my robot, joints 12"),
    # trainings: those by gradients take seconds and are run in full
    Rule(r"own-task\.md: robo-rl train \./circle\.py:Circle", says=((SUCCESS, 97.7, 99.9),)),
    Rule(r"own-robot\.md: robo-rl train quadrotor-hover .*", says=((SUCCESS, 80.0, 92.0),)),
    Rule(r"README\.md: robo-rl train quadrotor-hover", says=((SUCCESS, 96.0, 100.0),)),
    Rule(r"README\.md: robo-rl verify policy\.onnx", says=((r"([\d.]+)% of 1,000 episodes", 96.0, 100.0),)),
    Rule(r"README\.md: robo-rl (evaluate zoo:(?!go2-rough).*)", add=EPISODES, says=((ANY, 85.0, 100.0),)),
    Rule(r".*: robo-rl train quadrotor-(?!.*(ppo|updates)).*"),
    Rule(r".*: robo-rl train quadrotor-.*--apg\.updates.*", add="--episodes 4"),
    Rule(r".*: robo-rl train (pmsm|swarm)-.*", add="--apg.updates 5 --episodes 4"),
    Rule(r"sysid\.md: robo-rl train arm-reach .*"),  # ten seconds; its motion is identified
    Rule(r"retrain\.md: robo-rl train \$T --algorithm sac .*", add=SAC),
    Rule(r".*: robo-rl train (\./circle\.py|\$T).*"),
    Rule(r".*: robo-rl train arm-insert --algorithm ppo .*", add=PPO),
    Rule(r".*: robo-rl train arm-(insert|reach) .*--algorithm sac .*", add=SAC),
    Rule(r".*: robo-rl train arm-(insert|push|reach .*--algorithm bc) .*", add="--episodes 4"),
    Rule(r".*: robo-rl train car-practice .*", add=SAC),
    Rule(r".*: robo-rl train .*", add=PPO),
    Rule(r".*: robo-rl reset-states .*", add="--states 10"),
    Rule(r".*: robo-rl distill .*", add="--updates 2 --episodes 4"),
    Rule(r".*: robo-rl compress .*", add="--updates 20 --episodes 20"),
    # measurements; the page has exported another policy.onnx since the session was recorded
    Rule(r"commands\.md: robo-rl replay session\.mcap policy\.onnx", replace=("policy.onnx", "hover.onnx")),
    Rule(
        r"driving\.md: robo-rl evaluate runs/.* --against classical",
        replace=("runs/car-race-ppo-seed0-1", "zoo:car-race"),
        add="--episodes 100",
    ),
    Rule(r".*: robo-rl evaluate .*(--sweep|--against|--ground|go2|arm|car|nav|mobile).*", add="--episodes 20"),
    Rule(r".*: robo-rl verify (car|nav|omni|follow|place|fetch|traffic)\.onnx", add="--episodes 20 --min-success 0"),
    Rule(r"legs\.md: robo-rl verify .*", add="--episodes 20 --min-success 0"),
    Rule(
        r"manipulation\.md: robo-rl transfer place\.onnx", add="--episodes 10", replace=("place.onnx", "zoo:arm-place")
    ),  # a policy of one update places nothing, of which nothing can be kept
    Rule(r".*: robo-rl transfer .*", add="--episodes 10 --seconds 2"),
    Rule(r".*: robo-rl report (?!--).*", add="--episodes 20"),
    Rule(r".*: robo-rl firmware .*--fly 100.*", replace=("--fly 100", "--fly 2")),
    # what goes on until it is stopped
    Rule(r".*: robo-rl play (?!.*(--seconds|pmsm)).*--video .*", add="--seconds 2"),
    Rule(r".*: robo-rl play (?!.*--(video|picture)).*", until=r"http://", add="--no-open"),
    Rule(r".*: robo-rl emulate (?!.*--fault list).*", until="an emulated", stays=True),
    Rule(r".*--driver f1tenth .*/dev/pts/3.*", take=("/dev/pts/3", r"/dev/pts/\d+"), until=CONNECTED),
    Rule(r".*--port /dev/pts/3.*", take=("/dev/pts/3", r"/dev/pts/\d+"), add="--seconds 5"),
    Rule(r".*: robo-rl run .*--driver .*", until=CONNECTED),  # then deadlines of the wall clock are kept, or not
)


def rule_of(command: Command) -> Rule:
    """The first that matches."""
    return next((rule for rule in RULES if re.fullmatch(rule.pattern, command.key)), Rule(""))
