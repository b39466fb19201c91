"""The lines of docs/several-boards.md for Spark, on a real one: the same tables as by DuckDB."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import astuple
from pathlib import Path

import pytest
from hypermon.host.analysis.by_board import ANALYSES, Messages, analyse

from tests.host.analysis.test_by_board import rows, run
from tests.patience import patience

__all__ = ["run"]

ROOT = Path(__file__).parents[3]
#: Made by `make example OF=spark`: PySpark needs other packages than the project.
PYTHON = ROOT / ".build" / "spark-env" / "bin" / "python"
#: As on the page, but for the run's messages.
MESSAGES = Messages("event = 3", "event = 4", "payload")
OWN = Messages("nibble < 4", "nibble >= 12", "node % 2")
PROGRAM = """
import json, sys
import pyspark
from pyspark.sql import SparkSession
RUN, questions, lines, latency = json.loads(sys.argv[1])
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
found = {}
for QUESTION in questions:
    exec(lines)
    found[QUESTION] = [[field.dataType.simpleString() for field in table.schema], sorted(map(list, table.collect()))]
exec(latency)
found["latency"] = [[field.dataType.simpleString() for field in table.schema], sorted(map(list, table.collect()))]
java = spark.sparkContext._jvm.System.getProperty("java.version")
print(json.dumps([f"PySpark {pyspark.__version__}, Java {java}", found]))
spark.stop()
"""


@pytest.mark.slow
def test_spark_gives_the_same(run, tmp_path, capsys):
    if not (PYTHON.exists() and shutil.which("java")):
        pytest.skip("Spark is not installed: make example OF=spark")
    page = (ROOT / "docs" / "several-boards.md").read_text()
    lines, latency = re.findall(r"```python\n(.*?spark.*?)```", page, re.DOTALL)
    for said, own in zip(astuple(MESSAGES), astuple(OWN), strict=True):
        assert f'"{said}"' in latency
        latency = latency.replace(f'"{said}"', f'"{own}"')
    run.decode()
    types = ROOT / ".build" / "types" / "hypermon"
    types.mkdir(parents=True, exist_ok=True)
    for part in ("boards", "hdl", "host", "sim"):
        if not (types / part).is_symlink():
            (types / part).symlink_to(Path("../../..") / part)
    done = subprocess.run([PYTHON, "-c", PROGRAM, json.dumps([str(run.path), list(ANALYSES), lines, latency])],
                          env={**os.environ, "PYTHONPATH": str(types.parent), "SPARK_LOCAL_IP": "127.0.0.1"},
                          cwd=tmp_path, capture_output=True, text=True, timeout=patience(500))
    assert done.returncode == 0, done.stderr[-3000:]
    versions, found = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"\n{versions}")
    for question in [*ANALYSES, "latency"]:
        wanted = analyse(run, question, OWN if question == "latency" else None)
        names, told = found[question]
        assert [tuple(row) for row in told] == rows(wanted), question
        assert len(told) > 0
        assert set(names) <= {"int", "bigint", "smallint"}, "no decimals"
