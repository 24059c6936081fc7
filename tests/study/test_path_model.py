"""Path models: writing, reading, errors, and use by runs and shells."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

import longfat
from longfat import _native
from longfat.analysis.prediction import predict
from longfat.study import cells, load_study, path_model
from longfat.study.overrides import Overrides, read_setting
from longfat.study.path_model import PathModel

HOPS = [
    {"rate": "10Mbit/s", "delay": "2ms"},
    {"rate": "2Mbit/s", "delay": "5ms", "reverse": {"delay": "6ms"}},
]
STUDY = {
    "title": "A chain",
    "path": {"rate": "1Mbit/s"},
    "sweep": {"path.loss": ["0%", "1%"], "protocol.window": [4, 8]},
    "workload": {"kind": "file", "size": "100kB"},
    "protocols": [{"name": "sr", "kind": "selective-repeat"}],
}

link = st.fixed_dictionaries(
    {},
    optional={
        "rate": st.integers(1, 10**9).map(lambda rate: f"{rate}bit/s"),
        "delay": st.integers(0, 10**6).map(lambda micros: f"{micros}us"),
        "loss": st.integers(0, 100).map(lambda percent: f"{percent}%"),
        "queue": st.integers(1, 1000).map(lambda limit: f"{limit}pkt"),
    },
)
hop = st.tuples(link, link).map(lambda ends: {**ends[0], "reverse": ends[1]} if ends[1] else ends[0])


# Each example writes to the disk, which may be slow.
@given(hops=st.lists(hop, min_size=1, max_size=8), host=st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_written_model_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, hops: list[dict[str, Any]], host: str
) -> None:
    file = tmp_path_factory.mktemp("models") / "model.toml"
    model = PathModel({"hops": hops}, {"host": host, "hops": [{"rate_bps": [1.5e6, 1.7e6]}]})
    path_model.write(file, model)
    assert path_model.read(file) == model


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path = 3", "path: the table [path] is missing"),
        ("[measured]\nhost = 'a'", "path: the table [path] is missing"),
        ("measured = 1\n[path]", "measured: must be a table"),
        ("[path]\n[paths]", 'paths: unknown table: did you mean "path"? allowed: path, measured'),
        ("[path", "is not TOML"),
        ("[path]\nrate = '5'", "path.rate:"),
        ("[path]\nhops = [{}, {dealy = '1ms'}]", "path.hops.2.dealy: unknown key"),
        ("[path]\nhops = [{}, {delay = '61min'}]", "path.hops.2.delay: "),
        ("[path]\nhops = []", "path.hops: 0 links are out of range: 1 to 64"),
        (
            "[path]\ndelay = '1ms'\nhops = [{}]",
            "path.delay: cannot be set next to hops: set it for each link, e.g. path.hops.1.delay",
        ),
    ],
)
def test_an_invalid_model_is_a_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "model.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"model\.toml(:\d+)?: ") as refused:
        path_model.read(file)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_an_invalid_path_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.toml: cannot be read: No such file"):
        path_model.read(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"path\.dealy: unknown key"):
        path_model.write(tmp_path / "model.toml", PathModel({"dealy": "1ms"}))
    assert not (tmp_path / "model.toml").exists()


def test_traces_are_relative_to_the_models_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    file.write_text("[path]\nhops = [{ trace = 'up.txt' }]", encoding="utf-8")
    assert path_model.read(file).path == {"hops": [{"trace": str(tmp_path.resolve() / "up.txt")}]}


def test_a_study_runs_over_a_model(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    path_model.write(file, PathModel({"hops": HOPS}, {"host": "example.net"}))
    study = load_study(STUDY, Overrides(settings=(read_setting(f"path=@{file}"),)))
    assert study.path == {"hops": HOPS}
    # The model replaces the path, including sweeps of its keys.
    assert list(study.sweep) == ["protocol.window"]
    one = load_study(STUDY, Overrides(settings=(("path", {"hops": HOPS}), ("path.hops.2.rate", "3Mbit/s"))))
    assert one.path is not None
    assert one.path["hops"][1]["rate"] == "3Mbit/s"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("path", "model.toml", "path=@FILE"),
        ("path", "@nowhere.toml", "nowhere.toml: cannot be read"),
        ("path.hops.1.rate", "3Mbit/s", 'hops.*"1"|hops'),
    ],
)
def test_invalid_path_settings_are_errors(key: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_study(STUDY, Overrides(settings=((key, value),)))


def test_a_topology_takes_no_model(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    path_model.write(file, PathModel({"hops": HOPS}))
    study = {key: value for key, value in STUDY.items() if key not in ("path", "sweep")}
    study["topology"] = {"kind": "dumbbell", "pairs": 1, "bottleneck": {"rate": "1Mbit/s"}}
    with pytest.raises(ValueError, match=r"--set: path: cannot be set because the study has a \[topology\]"):
        load_study(study, Overrides(settings=(("path", f"@{file}"),)))


def test_the_relay_has_one_link() -> None:
    with pytest.raises(ValueError, match=r"the relay supports a path of one link only \(path.hops of "):
        load_study({**STUDY, "path": {"hops": HOPS}, "sweep": {}, "worlds": ["relay"]})


def test_stop_and_wait_over_hops_matches_theory() -> None:
    path: dict[str, Any] = {"hops": [*HOPS, {"preset": "lan"}]}
    trial = longfat.simulate(longfat.StopAndWait(), longfat.Path(**path), "300kB", seed=1)
    spec = {
        "path": path,
        "protocol": {"kind": "stop-and-wait"},
        "workload": {"kind": "file", "size": "300kB"},
    }
    expected = predict(spec)
    assert expected.exact
    assert expected.value == pytest.approx(trial.goodput_bps, rel=0.01)


def test_each_hop_takes_its_time() -> None:
    """The native module converts hops to forward and reverse links, which all closed forms use."""
    spec = {
        "path": {"hops": HOPS},
        "protocol": {"kind": "tcp"},
        "workload": {"kind": "bulk", "duration": "1s"},
    }
    layout = json.loads(_native.layout(json.dumps({**spec, "seed": 1, "trial": 0})))
    assert [link["name"] for link in layout["links"]] == ["forward/1", "reverse/1", "forward/2", "reverse/2"]
    assert [link["delay_s"] for link in layout["links"]] == [0.002, 0.002, 0.005, 0.006]
    assert layout["flows"][0]["links"] == [0, 2]
    assert layout["flows"][0]["reverse_links"] == [3, 1]


def test_whole_paths_are_swept_by_label(tmp_path: Path) -> None:
    """Tables, charts and claims have the label; specifications have the path."""
    path_model.write(tmp_path / "home.toml", PathModel({"hops": HOPS}))
    line = {"label": "line", "value": {"preset": "dsl"}}
    study = {**STUDY, "sweep": {"path": ["@home.toml", line]}}
    file = tmp_path / "study.toml"
    file.write_text(tomli_w.dumps(study), encoding="utf-8")
    loaded = load_study(file)
    found = cells(loaded)
    assert [cell.params for cell in found] == [{"path": "home"}, {"path": "line"}]
    assert [cell.spec["path"] for cell in found] == [{"hops": HOPS}, {"preset": "dsl"}]
    # The stored study needs no other file.
    (tmp_path / "home.toml").unlink()
    assert cells(load_study(tomllib.loads(loaded.text))) == found
    result = longfat.run(study | {"sweep": {"path": [line]}, "repeats": 1}, out=tmp_path / "out")
    assert result.to_polars()["path"].to_list() == ["line"]


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"path": ["@none.toml"]}, r"none\.toml: cannot be read"),
        ({"path": ["1%"]}, "has no key"),
        ({"path.loss": [{"label": "", "value": "1%"}]}, r'label = "NAME", value'),
        ({"path.loss": [{"label": "few"}]}, r'label = "NAME", value'),
        ({"path.loss": [{"label": "few", "value": "1%"}, {"label": "few", "value": "2%"}]}, "is repeated"),
        ({"path": [{"label": "a", "value": {"dealy": "1ms"}}]}, "dealy: unknown key"),
    ],
)
def test_invalid_labelled_values_are_errors(sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_study({**STUDY, "sweep": sweep})


def test_any_swept_value_takes_a_label() -> None:
    sweep = {"path.loss": [{"label": "bursts", "value": {"model": "every", "every": 50}}, "2%"]}
    found = cells(load_study({**STUDY, "sweep": sweep}))
    assert [cell.params["path.loss"] for cell in found] == ["bursts", "2%"]
    assert found[0].spec["path"]["loss"] == {"model": "every", "every": 50}
