"""The folders show the design because imports keep to it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.imports import LAYERS, forbidden_imports

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "headrace"


def made_up(folder: Path, file: str, text: str) -> Path:
    package = folder / "headrace"
    (package / file).parent.mkdir(parents=True)
    (package / file).write_text(text)
    return package


def test_the_package_keeps_to_its_import_rules():
    assert forbidden_imports(PACKAGE) == []


def test_every_folder_of_the_package_has_a_rule():
    assert {folder.name for folder in PACKAGE.iterdir() if list(folder.glob("**/*.py"))} - set(LAYERS) == set()


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("core/clock.py", "from headrace.log.topic import Topic", "core may import nothing of ours"),
        ("core/clock.py", "import polars", "standard library and numpy, pyarrow only"),
        ("core/clock.py", "import headrace", "instead of the module that has it"),
        ("log/topic.py", "from headrace.plan import windows", "log may import core"),
        ("log/topic.py", "from ..plan.windows import Window", "log may import core"),
        ("log/topic.py", "from .. import plan", "log may import core"),
        ("log/topic.py", "from headrace import plan", "log may import core"),
        ("log/topic.py", "import pyspark.sql", "log may do so never"),
        ("log/topic.py", "def read():\n    import pyspark", "log may do so never"),
        ("log/topic.py", "import importlib\nimportlib.import_module('headrace.plan')", "log may import core"),
        ("plan/windows/kinds.py", "import headrace.connectors.kafka.source", "plan may import core, schema"),
        ("api/app.py", "from headrace.sql import parse", "api may import core, plan"),
        ("operators/windows/sessions.py", "from headrace.api import App", "operators may import core, plan, schema"),
        ("operators/windows/sessions.py", "if True:\n    from pyspark import Row", "operators may do so never"),
        ("connectors/kafka/sink.py", "import pyspark", "may do so inside functions"),
        ("connectors/kafka/sink.py", "from headrace.connectors.redis.sink import Redis", "connectors do not know each other"),
        ("spark/session.py", "from headrace.api.app import App", "spark may import"),
        ("spark/session.py", "from headrace.jobs import job", "spark may import"),
        ("jobs/job.py", "from headrace.serve import views", "jobs may import"),
        ("ops/lag.py", "from headrace.cli import render", "ops may import"),
        ("serve/http.py", "from headrace.cli import main", "serve may import"),
        ("cli/demo.py", "from pyspark.sql import SparkSession", "may do so inside functions"),
        ("utilities/text.py", "import re", "has no rule"),
        ("helpers.py", "import re", "outside of every folder"),
        ("__init__.py", "import polars", "imports polars"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path, file, text, said):
    (found,) = forbidden_imports(made_up(tmp_path, file, text))
    assert found.startswith(f"{file}:")
    assert said in found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/columns/schema.py", "import re\nimport pyarrow as pa\nfrom headrace.core.errors import SchemaError"),
        ("log/topic.py", "import google_crc32c\nfrom headrace.core.clock import Clock\nfrom .segment import Segment"),
        ("connectors/kafka/sink.py", "from headrace.log.topic import Topic\ndef open():\n    import pyspark\n    import confluent_kafka"),
        ("connectors/kafka/sink.py", "from headrace.connectors.kafka.source import Source"),
        ("spark/session.py", "import pyspark\nfrom headrace.operators.windows.sessions import Sessions"),
        ("cli/demo.py", "def demo():\n    from pyspark.sql import SparkSession\n    import headrace"),
        ("__init__.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from headrace.api.app import App"),
    ],
)
def test_an_import_within_the_rules_is_left_alone(tmp_path, file, text):
    assert forbidden_imports(made_up(tmp_path, file, text)) == []


def test_connectors_share_the_modules_next_to_them(tmp_path):
    package = made_up(tmp_path, "connectors/kafka/sink.py", "from headrace.connectors.contract import Sink")
    (package / "connectors" / "contract.py").touch()
    assert forbidden_imports(package) == []


def test_importing_every_public_name_starts_no_jvm():
    program = "import sys, headrace; [getattr(headrace, name) for name in dir(headrace)]; print('pyspark' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
