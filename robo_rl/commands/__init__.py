"""The subcommands of ``robo-rl``, one file each, loaded when called. A module has ``main``, parsed by tyro, or
``command``, which gives it the defaults that hold for the words of a command line."""
