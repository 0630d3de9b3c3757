"""`headrace prepare`, once: a JVM of Spark's takes its classes from what it leaves."""

import subprocess
import sys

from headrace.ops.prepare import prepare
from headrace.spark.workers.quick_start import ARCHIVE

# -Xshare:on ends a JVM that cannot use the archive.
SESSION = """
import sys
from headrace.core.settings import Settings
from headrace.spark.session import session, stop

running = session(Settings(master="local[1]"), config={"spark.driver.extraJavaOptions": "-Xshare:on -Xlog:class+load:file=" + sys.argv[1]})
stop(running)
"""


def test_what_is_prepared_gives_the_jvm_nearly_all_of_its_classes(tmp_path):
    if not ARCHIVE.exists():  # `make test` has prepared it; it takes a minute
        assert prepare(ARCHIVE) == ARCHIVE.stat().st_size
    assert [file.name for file in ARCHIVE.parent.iterdir()] == [ARCHIVE.name]
    loaded = tmp_path / "loaded"
    subprocess.run([sys.executable, "-c", SESSION, loaded], check=True)
    sources = [line.rsplit("source: ", 1)[1] for line in loaded.read_text().splitlines() if "source: " in line]
    assert sum(source.startswith("shared objects file") for source in sources) > 0.8 * len(sources) > 1000
