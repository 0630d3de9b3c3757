"""A session is quiet, listens on this machine only, keeps its state as decided, and ends with its JVM."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
import pyspark
from pathlib import Path
from pyspark import SparkContext
from headrace.core.settings import Settings
from headrace.spark.session import PLACING, session, stop

def listening(pid):
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(descriptor))
        except OSError:
            pass
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.append(fields[1].split(":")[0])
    return found

running = session(Settings(master="local[1]", driver_memory="512m"), name="test", cores=1, output=Path(sys.argv[1]))
process = SparkContext._gateway.proc

def interpreter(frames):
    import pyspark
    for frame in frames:
        yield frame.assign(id=len(frame), python=sys.executable, spark=pyspark.__file__)[["id", "python", "spark"]].head(1)

(worker,) = running.range(3, numPartitions=1).mapInPandas(interpreter, "id long, python string, spark string").collect()
told = {
    "rows": worker["id"],
    "listening": listening(process.pid),
    "state": {name: running.conf.get(name) for name in PLACING} == PLACING,
    "zone": running.conf.get("spark.sql.session.timeZone"),
    "ui": running.conf.get("spark.ui.enabled"),
    "python": worker["python"] == sys.executable,
    "compiled": worker["spark"] == pyspark.__file__,
    "own terminal": os.getsid(process.pid) != os.getsid(0),
}
stop(running)
told["ended"] = process.poll() is not None
print(json.dumps(told))
"""

WITHOUT = """
import sys
from pathlib import Path
from headrace.core.errors import JobError
from headrace.core.settings import Settings
from headrace.spark.session import session

try:
    session(Settings(master="nonsense"), output=Path(sys.argv[1]))
except JobError as error:
    print(error.fact, "|", error.hint)
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens where")
def test_a_session_is_quiet_local_and_ends_with_its_jvm(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "spark.log"], capture_output=True, text=True, check=False, timeout=220)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    loopback = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
    assert set(told.pop("listening")) <= loopback
    assert told == {
        "rows": 3, "state": True, "zone": "UTC", "ui": "false", "python": True, "compiled": True, "own terminal": True, "ended": True,
    }  # fmt: skip
    assert (tmp_path / "spark.log").exists()


def test_a_master_that_is_not_there_is_told_with_a_hint(tmp_path):
    done = subprocess.run([sys.executable, "-c", WITHOUT, tmp_path / "spark.log"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0
    assert done.stdout.startswith("Spark did not start on nonsense: ")
    assert "headrace doctor" in done.stdout


def test_a_missing_java_is_told_with_what_to_install(tmp_path):
    program = WITHOUT.replace("nonsense", "local[1]")
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path / "bin")}
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "ps"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    command = [sys.executable, "-c", program, tmp_path / "spark.log"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment)
    assert done.stdout.startswith("Spark did not start: no java on PATH, and JAVA_HOME is not set | install Java 17 or newer")


PAGES = """
import json, sys, urllib.request
from pathlib import Path
from headrace.core.settings import Settings
from headrace.spark.session import session, stop

running = session(Settings(master="local[1]", driver_memory="512m", spark_ui=True), name="test", cores=1, output=Path(sys.argv[1]))
running.range(3, numPartitions=1).count()
address = running.sparkContext.uiWebUrl
jobs = urllib.request.urlopen(f"{address}/jobs/", timeout=60).read().decode()
stop(running)
print(json.dumps({"address": address, "shown": "Completed Jobs" in jobs, "kills": "/kill/" in jobs or "(kill)" in jobs}))
"""


def test_sparks_own_pages_are_served_on_loopback_if_asked_for_and_stop_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", PAGES, str(tmp_path / "spark.log")], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["address"].startswith("http://127.0.0.1:") or told["address"].startswith("http://localhost:")
    assert (told["shown"], told["kills"]) == (True, False)
