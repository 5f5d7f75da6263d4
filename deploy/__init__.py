"""From a trained policy to a robot: the bundle, its runtime, and the proofs around it."""

if __name__ == "deploy":  # found in its own folder, by its former name
    from robo_rl.former_names import become

    become(__name__)
