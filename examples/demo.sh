#!/bin/sh
# From nothing to a verified policy file, a report and a video. Run it by: make demo
set -eu

robo_rl="${BIN:-.venv/bin}/robo-rl"
python="${BIN:-.venv/bin}/python"
step() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }

step "1/5  Train: a quadrotor learns to hover from any tilt up to 90 degrees"
result=$("$robo_rl" train quadrotor-hover --runs demo/runs --json)
run=$(printf '%s\n' "$result" | "$python" -c 'import json, sys; print(json.loads(sys.stdin.readlines()[-1])["run"])')

step "2/5  Export: the policy as one file that describes itself"
"$robo_rl" export "$run" --out demo/policy.onnx

step "3/5  Verify: the file does what was trained"
"$robo_rl" verify demo/policy.onnx
"$robo_rl" inspect demo/policy.onnx

step "4/5  Record a video"
"$robo_rl" play demo/policy.onnx --video demo/flight.mp4

step "5/5  Report"
"$robo_rl" report "$run" --out demo/report.html

step "Done"
cat <<END
  demo/report.html    plots, tables and the video: open it in a browser
  demo/flight.mp4     the video
  demo/policy.onnx    the policy; plain onnxruntime can run it

Next:
  $robo_rl play demo/policy.onnx
      watch and disturb it, in the browser
  $robo_rl evaluate demo/policy.onnx --sweep
      find the limits of its robustness
  $robo_rl train quadrotor-track
      follow figure-eights
  $robo_rl train quadrotor-hover --robot examples/own_robot.toml
      train for your own robot
  $python examples/run_on_robot.py demo/policy.onnx
      see how a robot's computer runs it
END
