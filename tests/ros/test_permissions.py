"""The permissions for a secured network: what running nodes use is allowed to them, and no request of a stranger's."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing: pip install 'robo-rl[ros]'")

from robo_rl.contract import Contract
from robo_rl.deploy.robot.bundle import Bundle
from robo_rl.ros.permissions import ENCLAVES, REQUESTS, permissions
from robo_rl.zoo import located

Allowed = dict[tuple[str, str], set[str]]


def contract_of(name: str) -> Contract:
    return Bundle.read(located(f"zoo:{name}")).contract


def allowed(text: str) -> dict[str, Allowed]:
    """Names by (topics or services, verb), by enclave."""
    found: dict[str, Allowed] = {}
    for enclave in ET.fromstring(text).iter("enclave"):
        rules: Allowed = defaultdict(set)
        for group in [*enclave.iter("topics"), *enclave.iter("services")]:
            ((verb, rule),) = group.attrib.items()
            assert rule == "ALLOW"
            rules[group.tag, verb] |= {str(one.text) for one in group}
        found[enclave.attrib["path"].rpartition("/")[2]] = rules
    return found


@pytest.mark.parametrize("name", ["quadrotor-hover", "go2-flat"])
def test_only_the_policy_may_command_and_only_the_operator_may_engage(name: str) -> None:
    rules = allowed(permissions(contract_of(name)))
    assert tuple(rules) == ENCLAVES
    may_command = {who for who in rules if any("/command/" in topic for topic in rules[who]["topics", "publish"])}
    assert may_command == {"policy"}
    for request in (set(REQUESTS) - {"stop"}) | {"change_state", "set_parameters"}:
        assert {who for who in rules if f"/policy/{request}" in rules[who]["services", "request"]} == {"operator"}
    assert {who for who in rules if "/policy/stop" in rules[who]["services", "request"]} == {"operator", "viewer"}
    assert {who for who in rules if "/policy/heartbeat" in rules[who]["topics", "publish"]} == {"operator"}
    publishers = [who for who in rules for topic in rules[who]["topics", "publish"] if topic in ("/odom", "/imu")]
    assert set(publishers) == {"robot"}
    assert not any(service for (kind, verb), service in rules["robot"].items() if verb == "request")


def test_a_namespace_is_before_all_names_but_the_global_ones() -> None:
    rules = allowed(permissions(contract_of("quadrotor-hover"), "red/"))
    names = {name for who in rules.values() for group in who.values() for name in group}
    assert {name for name in names if not name.startswith("/red/")} == {
        "/clock", "/diagnostics", "/parameter_events", "/rosout", "/tf", "/tf_static",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "keystore"),
    [
        ("policy", "none"),
        ("policy", "another enclave"),
        ("policy", "nonsense"),
        ("stop", "none"),
        ("panel", "nonsense"),
    ],
)
def test_nothing_starts_without_the_security_that_was_asked_for(
    flight, bundle_file: Path, what: str, keystore: str
) -> None:
    """No wheel of Fast DDS has it; where a distribution's has, a keystore of nonsense is refused in its place."""
    enclave = flight.folder / "keystore/enclaves" / ("other" if keystore == "another enclave" else "robot")
    enclave.mkdir(parents=True)
    for name in ("identity_ca.cert.pem", "permissions_ca.cert.pem", "cert.pem", "key.pem", "governance.p7s",
                 "permissions.p7s"):  # fmt: skip
        (enclave / name).write_text("nonsense")
    env = {"ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Enforce", "ROS_SECURITY_ENCLAVE_OVERRIDE": "/robot"}
    if keystore != "none":
        env["ROS_SECURITY_KEYSTORE"] = str(flight.folder / "keystore")
    flight.start(what, *([str(bundle_file)] if what == "policy" else []), env=env)
    assert flight.processes[what].wait(timeout=180) == 1
    said = flight.log(what)
    assert "robo-rl ros: ROS 2 does not start" in said
    assert "ROS_SECURITY_KEYSTORE" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_what_running_nodes_offer_and_use_is_what_they_are_allowed(
    flight, bundle_file: Path, messages: dict[str, str]
) -> None:
    flight.start("twin", "--use-sim-time", env=messages)
    flight.start("policy", str(bundle_file), "--use-sim-time", env=messages)
    flight.start("panel", "--port", "0", "--use-sim-time", env=messages)
    flight.fly(0.5)
    rules, node = allowed(permissions(Bundle.read(bundle_file).contract)), flight.operator.node

    def used(name: str) -> Allowed:
        of = (name, "/")
        return {
            ("topics", "publish"): {topic for topic, _ in node.get_publisher_names_and_types_by_node(*of)},
            ("topics", "subscribe"): {topic for topic, _ in node.get_subscriber_names_and_types_by_node(*of)},
            ("services", "reply"): {service for service, _ in node.get_service_names_and_types_by_node(*of)},
            ("services", "request"): {service for service, _ in node.get_client_names_and_types_by_node(*of)},
        }

    flight.until(lambda: {"policy", "panel", "twin"} <= set(node.get_node_names()), "the nodes")
    flight.until(lambda: "/policy/heartbeat" in used("panel")["topics", "publish"], "the panel")
    flight.until(lambda: "/odom" in used("panel")["topics", "subscribe"], "the panel's signals")
    for name, enclave in (("policy", "policy"), ("panel", "operator"), ("operator", "operator")):
        for what, names in used(name).items():
            foreign = ("/twin/",) if name == "policy" else ("/twin/", f"/{name}/")
            others = {one for one in names if one.startswith(foreign)}
            assert names - others <= rules[enclave][what], (name, what)  # a simulated robot's own are for tests
    for what in (("topics", "publish"), ("services", "reply")):  # discovery takes its time on a busy machine
        flight.until(lambda what=what: used("policy")[what] >= rules["policy"][what], "all that the policy offers")
    sent = used("policy")
    assert sent["topics", "publish"] == rules["policy"]["topics", "publish"]
    assert sent["services", "reply"] == rules["policy"]["services", "reply"]
    simulated = {name for names in used("twin").values() for name in names if name.startswith("/twin/")}
    assert used("twin")["topics", "publish"] - simulated - {"/setpoint/pose", "/setpoint/twist", "/policy/heartbeat"} \
        <= rules["robot"]["topics", "publish"]  # fmt: skip
    assert used("twin")["topics", "subscribe"] - simulated <= rules["robot"]["topics", "subscribe"]
