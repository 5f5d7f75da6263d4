"""Policies of other trainers: read, described in one TOML, compiled into a bundle, proved against their own runtime.

``onnx_network``, ``script_network`` and ``parameters`` read a file's network, ``statements`` what trainers say of it,
``motion`` the clip inside. ``description`` is the TOML that holds all that and what was asked for; ``terms`` and
``task`` make signals into observations and actions into commands; ``graph`` writes the bundle, and ``mistakes`` looks
for what is wrong with a policy that falls. ``adopting`` puts them together for the command.
"""
