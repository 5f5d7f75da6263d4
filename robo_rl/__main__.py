"""``python -m robo_rl`` is ``robo-rl``."""

from robo_rl.cli import main

main()
