#!/bin/sh
# Make the pictures in this folder, from four runs and with Chromium:
#
#   robo-rl train quadrotor-hover && robo-rl train quadrotor-track && robo-rl train go2-flat
#   robo-rl train g1-track-squat
#   sh docs/images/make.sh runs/quadrotor-hover-seed0-1 runs/quadrotor-track-seed0-1 runs/go2-flat-ppo-seed0-1 \
#       runs/g1-track-squat-ppo-seed0-1
set -eu

hover=$1 track=$2 walk=$3 squat=$4 here=$(dirname "$0")
scratch=$(mktemp -d) running=""
trap 'kill $running 2>/dev/null; rm -rf "$scratch"' EXIT

shrink() { # file
    python - "$1" <<'PYTHON'
import sys
from PIL import Image
Image.open(sys.argv[1]).convert("RGB").quantize(256).save(sys.argv[1], optimize=True)
PYTHON
}

shoot() { # width,height file url [option]
    chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" \
        --window-size="$1" --screenshot="$2" ${4:-} "$3" 2>/dev/null
    shrink "$2"
}

robo-rl play "$hover" --picture "$here/recovery.png" --seed 4 --fixed initial/tilt 1.57
robo-rl play "$walk" --picture "$here/walk.png" --fixed command/x 1 command/y 0 command/yaw 0

robo-rl play zoo:g1-walk --picture "$here/legs.png"
robo-rl play "$squat" --picture "$here/track.png" --seconds 2.3 --fixed push/speed 0
python - "$here/legs.png" "$here/track.png" <<'PYTHON'
import sys
from PIL import Image
for name in sys.argv[1:]:
    Image.open(name).convert("RGB").resize((1200, 200)).quantize(128).save(name, optimize=True)
PYTHON

python "$here/families.py"
python "$here/films.py"
python "$here/rough.py"
robo-rl play zoo:go2-rough --picture "$here/stairs.png" --seconds 9 --fixed ground/kind 0 ground/difficulty 0.75 \
    initial/place 0 initial/yaw 0 command/x 0.6 command/y 0 command/yaw 0 command/stand 1
shrink "$here/stairs.png"

robo-rl play zoo:go2-recover --picture "$here/up.png" --seconds 2.2 --seed 3 --fixed initial/tilt 1
shrink "$here/up.png"

robo-rl evaluate zoo:quadrotor-hover --grid mass 0.7:1.3:7 delay 0:0.04:5 --episodes 70000 --heat-map "$here/grid.png"

robo-rl record zoo:go2-flat --out "$scratch/walk.mcap" \
    --fixed payload 2.5 joint_friction 1.8 armature 1.4 command_delay 0.015
robo-rl sysid "$scratch/walk.mcap" --plot "$here/sysid.png" --out "$scratch/walk.toml"
shrink "$here/sysid.png"

robo-rl play zoo:quadrotor-hover --no-open --json --seed 14 --seconds 2 --fixed initial/tilt 1.57 >"$scratch/viewer" &
running=$!
until grep -q url "$scratch/viewer"; do sleep 0.2; done
python "$here/viewer.py" "$(sed -n 's/.*"url": "\(.*\)".*/\1/p' "$scratch/viewer")" "$here/viewer.png"
kill $running

robo-rl report "$track" --out "$scratch/report.html"
shoot 1120,1500 "$here/report.png" "file://$scratch/report.html"
python - "$scratch" <<'PYTHON'
import pathlib, re, sys
page = pathlib.Path(sys.argv[1], "report.html").read_text()
plot = re.search(r'id="figure-eight".*?(<svg.*?</svg>)', page, re.DOTALL)[1]
pathlib.Path(sys.argv[1], "plot.html").write_text(f'<body style="font-family: sans-serif; background: white">{plot}')
PYTHON
shoot 900,460 "$here/figure-eight.png" "file://$scratch/plot.html"
