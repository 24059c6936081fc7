"""A cluster with `tls://` addresses and its own certificate authority."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import dask
import pytest
import tomli_w

import longfat as lf
from longfat.cluster import ClusterError, Connection, Target
from tests.cluster.certificates import write_certificates
from tests.cluster.processes import machines
from tests.cluster.test_cluster import STUDY
from tests.conftest import command
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

pytest.importorskip("distributed")
pytest.importorskip("cryptography")


def run(folder: Path, address: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("run", "study.toml", "--out", "there", "--scheduler", address),
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )


def settings(variables: dict[str, str]) -> dict[str, Any]:
    """Returns Dask's TLS settings with those of environment variables."""
    read = dask.config.collect_env(variables).get("distributed", {}).get("comm", {}).get("tls", {})
    merged: dict[str, Any] = dask.config.merge(dask.config.get("distributed.comm.tls"), read)
    return merged


@pytest.mark.slow
def test_only_clients_with_a_certificate_of_the_authority_run_trials(tmp_path: Path) -> None:
    ours, others = (write_certificates(tmp_path / name, name) for name in ("ours", "others"))
    (tmp_path / "study.toml").write_text(tomli_w.dumps(STUDY), encoding="utf-8")
    here = lf.run(tmp_path / "study.toml", out=tmp_path / "here", progress=False)
    with machines(tmp_path, 1, protocol="tls", variables=ours) as cluster:
        assert cluster.address.startswith("tls://")
        done = run(tmp_path, cluster.address, ours)
        assert done.returncode == 0, done.stderr
        assert lf.load_run(tmp_path / "there").to_polars().equals(here.to_polars())
        unencrypted = cluster.address.replace("tls://", "tcp://")
        for variables, address, reason in (
            ({}, cluster.address, "needs certificates: set distributed.comm.tls"),
            (others, cluster.address, "no scheduler answers: "),
            ({}, unencrypted, "no scheduler answers: "),
        ):
            with (
                dask.config.set({"distributed.comm.tls": settings(variables)}),
                pytest.raises(ClusterError, match=f"^{address}: {reason}"),
                Connection(Target(address), patience=2.0),
            ):
                pass
