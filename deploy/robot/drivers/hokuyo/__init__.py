"""Hokuyo lidars on a network: SCIP 2, and what they measure as scans."""
