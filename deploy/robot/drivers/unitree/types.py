"""The DDS types of Unitree's robots of both families, with type objects equal to those of unitree_sdk2.

Octets are ``types.byte``. With ``types.uint8``, as in unitree_sdk2_python, the type object is another one, and readers
and writers of other versions exchange nothing without a word; tests compare the hashes.

From unitree_sdk2 2.0.2, include/unitree/idl (BSD-3-Clause). Needs the package cyclonedds.
"""

from __future__ import annotations

from typing import Any

from cyclonedds.idl import make_idl_struct
from cyclonedds.idl import types as idl
from cyclonedds.idl.types import byte, float32, int16, int32, int64, uint16, uint32

array: Any = idl.array
sequence: Any = idl.sequence


def _struct(module: str, name: str, **fields: Any) -> Any:
    """A final struct ``module.msg.dds_.name_``."""
    return make_idl_struct(f"{name}_", f"{module}.msg.dds_.{name}_", fields)


def _octets(count: int) -> Any:
    return array[byte, count]


def _go(name: str, **fields: Any) -> Any:
    return _struct("unitree_go", name, **fields)


MotorCmd = _go(
    "MotorCmd", mode=byte, q=float32, dq=float32, tau=float32, kp=float32, kd=float32, reserve=array[uint32, 3]
)
BmsCmd = _go("BmsCmd", off=byte, reserve=_octets(3))
HEADER = {
    "head": _octets(2), "level_flag": byte, "frame_reserve": byte, "sn": array[uint32, 2],
    "version": array[uint32, 2], "bandwidth": uint16,
}  # fmt: skip
LowCmd = _go(
    "LowCmd", **HEADER, motor_cmd=array[MotorCmd, 20], bms_cmd=BmsCmd, wireless_remote=_octets(40), led=_octets(12),
    fan=_octets(2), gpio=byte, reserve=uint32, crc=uint32,
)  # fmt: skip
IMUState = _go(
    "IMUState", quaternion=array[float32, 4], gyroscope=array[float32, 3], accelerometer=array[float32, 3],
    rpy=array[float32, 3], temperature=byte,
)  # fmt: skip
MotorState = _go(
    "MotorState", mode=byte, q=float32, dq=float32, ddq=float32, tau_est=float32, q_raw=float32, dq_raw=float32,
    ddq_raw=float32, temperature=byte, lost=uint32, reserve=array[uint32, 2],
)  # fmt: skip
BmsState = _go(
    "BmsState", version_high=byte, version_low=byte, status=byte, soc=byte, current=int32, cycle=uint16,
    bq_ntc=_octets(2), mcu_ntc=_octets(2), cell_vol=array[uint16, 15],
)  # fmt: skip
LowState = _go(
    "LowState", **HEADER, imu_state=IMUState, motor_state=array[MotorState, 20], bms_state=BmsState,
    foot_force=array[int16, 4], foot_force_est=array[int16, 4], tick=uint32, wireless_remote=_octets(40),
    bit_flag=byte, adc_reel=float32, temperature_ntc1=byte, temperature_ntc2=byte, power_v=float32, power_a=float32,
    fan_frequency=array[uint16, 4], reserve=uint32, crc=uint32,
)  # fmt: skip


def _hg(name: str, **fields: Any) -> Any:
    return _struct("unitree_hg", name, **fields)


HgMotorCmd = _hg("MotorCmd", mode=byte, q=float32, dq=float32, tau=float32, kp=float32, kd=float32, reserve=uint32)
HgLowCmd = _hg(
    "LowCmd", mode_pr=byte, mode_machine=byte, motor_cmd=array[HgMotorCmd, 35], reserve=array[uint32, 4], crc=uint32
)
HgIMUState = _hg(
    "IMUState", quaternion=array[float32, 4], gyroscope=array[float32, 3], accelerometer=array[float32, 3],
    rpy=array[float32, 3], temperature=int16,
)  # fmt: skip
HgMotorState = _hg(
    "MotorState", mode=byte, q=float32, dq=float32, ddq=float32, tau_est=float32, temperature=array[int16, 2],
    vol=float32, sensor=array[uint32, 2], motorstate=uint32, reserve=array[uint32, 4],
)  # fmt: skip
HgLowState = _hg(
    "LowState", version=array[uint32, 2], mode_pr=byte, mode_machine=byte, tick=uint32, imu_state=HgIMUState,
    motor_state=array[HgMotorState, 35], wireless_remote=_octets(40), reserve=array[uint32, 4], crc=uint32,
)  # fmt: skip
LOW_LEVEL = {"go": (LowCmd, LowState), "hg": (HgLowCmd, HgLowState)}
"""Commands and states, by family."""


def _api(name: str, **fields: Any) -> Any:
    return _struct("unitree_api", name, **fields)


RequestIdentity = _api("RequestIdentity", id=int64, api_id=int64)
RequestLease = _api("RequestLease", id=int64)
RequestPolicy = _api("RequestPolicy", priority=int32, noreply=bool)
RequestHeader = _api("RequestHeader", identity=RequestIdentity, lease=RequestLease, policy=RequestPolicy)
Request = _api("Request", header=RequestHeader, parameter=str, binary=sequence[byte])
ResponseStatus = _api("ResponseStatus", code=int32)
ResponseHeader = _api("ResponseHeader", identity=RequestIdentity, status=ResponseStatus)
Response = _api("Response", header=ResponseHeader, data=str, binary=sequence[byte])

HASHES = {
    HgLowCmd: "6569fc15f0d47aa8600b9e91fbbc", HgLowState: "2f38296b52aa0230b92d378b1e39",
    LowCmd: "832876ceec9737d69f6ed62a3f63", LowState: "853a99e23d0daa1610b65c526b40",
    Request: "cba4dc965d393ada76b4de081925", Response: "48c997d379c3e18c530b5f8fe946",
}  # fmt: skip
"""Of the minimal type objects (after the kind, f1): of unitree_sdk2's headers, and of its C++ classes compiled."""
