"""`headrace support-bundle`: what explains a job is in it, and no secret is."""

from __future__ import annotations

import json
import stat
import zipfile

import pytest

from headrace.cli.commands import execute
from headrace.core.errors import JobError
from headrace.core.redaction import Redaction
from tests.support.troubled import TroubledJob

CANARY = "c4nary-5ecret"


@pytest.fixture
def shop(tmp_path):
    job = TroubledJob(tmp_path / "home")
    yield job
    job.log.close()


def bundled(shop, tmp_path):
    target = tmp_path / "bundle.zip"
    assert execute(["support-bundle", "shop", "--home", str(shop.home), "-o", str(target)]) == 0
    with zipfile.ZipFile(target) as bundle:
        return {name: bundle.read(name).decode() for name in bundle.namelist()}


def test_a_bundle_has_what_explains_a_job(shop, tmp_path):
    shop.commit({0: 60, 1: 0})
    shop.account("orders", taken=5, out=5)
    shop.recorder.end(JobError("the disk is full"))
    # One from before, which others may read.
    (tmp_path / "bundle.zip").touch(0o644)
    found = bundled(shop, tmp_path)
    assert set(found) == {
        "versions.json", "settings.json", "description.json", "job.json", "run.json", "offsets/0", "commits/0", "accounting.json",
    }  # fmt: skip
    assert json.loads(found["run.json"])["last_error"] == "the disk is full"
    assert json.loads(found["versions.json"])["pyspark"] == "4.3.0"
    assert json.loads(found["settings.json"])["home"] == str(shop.home)
    assert json.loads(found["accounting.json"])[0]["in"] == 5
    assert json.loads(found["offsets/0"].splitlines()[-1])["epoch"] == 1
    assert stat.S_IMODE((tmp_path / "bundle.zip").stat().st_mode) == 0o600


SAID = [
    f"cannot connect to postgresql://shop:{CANARY}@db:5432/orders",
    f"cannot connect to host=db password={CANARY} dbname=orders",
    f'{{"sasl.password": "{CANARY}", "acks": "all"}}',
    f"PGPASSWORD='{CANARY} with spaces'",
    f"401 for Authorization: Bearer {CANARY}",
    f"https://host/path?token={CANARY}&page=1",
    f"aws_secret_access_key: {CANARY}",
    f"nothing names it but the environment does: {CANARY}-of-environment",
    f"a token of the server was {CANARY}-of-server",
]


@pytest.mark.parametrize("said", SAID)
def test_no_secret_is_in_a_bundle(shop, tmp_path, monkeypatch, said):
    monkeypatch.setenv("SHOP_TOKEN", f"{CANARY}-of-environment")
    monkeypatch.setenv("HEADRACE_KAFKA", f"sasl://shop:{CANARY}@broker:9092")
    (shop.home / "serve").mkdir()
    (shop.home / "serve" / "tokens.json").write_text(json.dumps({"read": f"{CANARY}-of-server"}))
    description = json.loads((shop.place.path / "description.json").read_text())
    description["outputs"][0]["does"] = said
    (shop.place.path / "description.json").write_text(json.dumps(description))
    shop.account("orders", {"dead_letter_reason": f"bad value {CANARY}"}, taken=1, dead_letter=1)
    shop.recorder.end(JobError(said))
    found = bundled(shop, tmp_path)
    assert [name for name, text in found.items() if CANARY in text] == []
    # What hides a secret leaves the rest as it is.
    assert json.loads(found["run.json"])["ended_at"]
    assert json.loads(found["description.json"])["app"] == "shop"


def test_what_is_no_secret_stays():
    text = 'job "tokens" at epoch 5, key=NL, host=db:5432, https://host/path?page=1'
    assert Redaction({"HOME": "/home/shop", "PATH": "/usr/bin"})(text) == text
    # The working directory is in a variable whose name looks like that of a password.
    where = "home /srv/shop/home, app /srv/shop/app.py"
    assert Redaction({"PWD": "/srv/shop", "OLDPWD": "/srv"})(where) == where
