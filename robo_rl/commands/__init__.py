"""The subcommands of ``robo-rl``, one file each, loaded when called. A module has ``main``, parsed by tyro."""
