"""Simulation: plants, robots, sensors, randomization and the tasks that are made of them."""

if __name__ == "sim":  # found in its own folder, by its former name
    from robo_rl.former_names import become

    become(__name__)
