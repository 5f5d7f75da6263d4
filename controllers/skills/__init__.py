"""Scripts for arms: approach, place, push, insert. They demonstrate, and are baselines."""
