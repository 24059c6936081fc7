"""Workers receive the traces and classes that a study names."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import longfat as lf
from longfat.cluster.attachments import Attachment, AttachmentError, attachments_of, localised, missing
from longfat.system.interpreter import python_command
from tests.cluster.test_faults import PARTS, STUDY, write
from tests.conftest import command
from tests.waiting import PATIENCE_S

pytest.importorskip("distributed")

SPEC: dict[str, Any] = {
    "path": {"forward": {"trace": "cell.trace"}},
    "protocol": {"kind": "tcp", "congestion": {"kind": "parts.py:Aimd"}},
}


def test_a_specification_names_local_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cell.trace").write_text("1\n2\n")
    Path("parts.py").write_text(PARTS.read_text())
    attachments = attachments_of(SPEC)
    contents = {one.digest: one.content() for one in attachments}
    folder = tmp_path / "worker"
    assert missing(attachments, {}, folder)
    found, names = localised(SPEC, attachments, contents, folder)
    assert not missing(attachments, {}, folder)
    trace = Path(found["path"]["forward"]["trace"])
    assert (trace.parent.parent, trace.name, trace.read_text()) == (folder, "cell.trace", "1\n2\n")
    assert found["protocol"]["congestion"]["kind"].endswith("/parts.py:Aimd")
    assert sorted(names.values()) == ["cell.trace", "parts.py:Aimd"]
    # Contents that the worker has already are not needed again.
    assert localised(SPEC, attachments, {}, folder)[0] == found


def test_a_module_must_be_the_same() -> None:
    here = attachments_of({"congestion": "tests.cluster.parts:Aimd"})
    assert localised({}, here, {}, Path())[0] == {}
    other = [Attachment(here[0].name, here[0].kind, "0")]
    with pytest.raises(AttachmentError, match=r"has another version of module tests\.cluster\.parts"):
        localised({}, other, {}, Path())
    with pytest.raises(AttachmentError, match="lacks a class"):
        localised({}, [Attachment("no.such:Aimd", "module", "0")], {}, Path())


def test_errors_have_the_names_of_the_study(tmp_path: Path, scheduler: str) -> None:
    protocols = [{"name": "failing", "kind": "tcp", "congestion": "parts.py:Failing"}]
    file = write(tmp_path, STUDY | {"protocols": protocols})
    here = lf.run(file, out=tmp_path / "here", progress=False).to_polars()
    there = lf.run(file, out=tmp_path / "there", progress=False, scheduler=scheduler).to_polars()
    assert there.equals(here)
    assert f"{tmp_path}/parts.py:Failing.on_lost" in here["error"].drop_nulls()[0]


SCRIPT = """
import sys
import longfat as lf

class Own(lf.CongestionController):
    def on_acknowledged(self, ack):
        self.window += self.segment
    def on_lost(self, loss):
        self.window /= 2
    def on_timeout(self, now, in_flight):
        self.window = self.segment

if __name__ == "__main__":
    path = {"rate": "20Mbit/s", "delay": "10ms", "queue": "40pkt", "loss": "1%"}
    base = {"path": path, "size": "30kB", "protocol": lf.Tcp(Own)}
    here = lf.sweep(base, seeds=5, out="here", progress=False)
    there = lf.sweep(base, seeds=5, out="there", progress=False, scheduler=sys.argv[1])
    print(there.to_polars().equals(here.to_polars()), there.to_polars()["error"].null_count())
"""


@pytest.mark.slow
def test_a_class_of_a_script_runs_on_workers(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        python_command("script.py", scheduler),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == "True 5\n", done.stderr


@pytest.mark.slow
def test_a_cluster_has_the_progress_of_a_local_run(tmp_path: Path, scheduler: str) -> None:
    write(tmp_path, STUDY)
    done = subprocess.run(
        command("run", "study.toml", "--scheduler", scheduler),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stderr.splitlines()
    assert first == "sim: 36 trials to run"
    assert last.startswith("sim: 36 of 36 trials in ")
