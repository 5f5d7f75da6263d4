"""Policies of other trainers: read, described in one TOML, compiled into a bundle, proved against their own runtime.

``networks`` reads the file's network, ``statements`` what trainers say of it, ``description`` is the TOML that holds
both and what was asked for, ``terms`` and ``task`` make signals into observations and actions into commands, ``graph``
writes the bundle, and ``mistakes`` looks for what is wrong with a policy that falls.
"""
