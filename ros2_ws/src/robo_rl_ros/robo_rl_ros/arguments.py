"""The command line of a process that has two nodes."""

from __future__ import annotations


def name_and_arguments(arguments: list[str], usual: str) -> tuple[str, list[str]]:
    """Take the rule ``__node:=name`` out of a command line, since it must not rename the second node too."""
    name = usual
    left: list[str] = []
    for argument in arguments:
        if argument.startswith(("__node:=", "__name:=")) and left and left[-1] in ("-r", "--remap"):
            name = argument.split(":=", 1)[1]
            left.pop()
        else:
            left.append(argument)
    return name, left
