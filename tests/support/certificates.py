"""Keys and certificates for servers and clients on loopback, made by `openssl`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certified:
    """A key, and a certificate that vouches for itself."""

    key: Path
    certificate: Path


def certified(directory: Path, name: str, password: str = "") -> Certified:
    """Make a key, which a password may lock, and its certificate for 127.0.0.1."""
    made = Certified(directory / f"{name}.key", directory / f"{name}.pem")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    locked = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    who = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-keyout", str(made.key), "-out", str(made.certificate)]
    done = subprocess.run(["openssl", "req", "-x509", *curve, *locked, *who, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made
