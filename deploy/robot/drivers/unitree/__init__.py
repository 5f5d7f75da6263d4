"""Unitree's robots of the go family (Go2, B2, H1) over DDS: bytes, types, mode, the keeper of the command topic."""
