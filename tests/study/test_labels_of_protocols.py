"""Labels of protocols: what readers see instead of the name, without a change of trials or claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import longfat as lf
from longfat.presentation import series_names
from longfat.presentation.run.report import page as report
from longfat.results.trial import cell_key
from longfat.study import Overrides, Study, load_study
from longfat.study.schema import study_schema
from longfat.study.sweep import cells

Data = dict[str, Any]


def study(**labels: str) -> Data:
    """Returns a study of Reno and CUBIC with labels by name."""
    entries = [{"name": name, "kind": "tcp", "congestion": name} for name in ("reno", "cubic")]
    return {
        "title": "Two controllers",
        "path": {"rate": "10Mbit/s", "delay": "5ms", "loss": "1%"},
        "workload": {"kind": "file", "size": "100kB"},
        "repeats": 3,
        "protocols": [e | ({"label": labels[e["name"]]} if e["name"] in labels else {}) for e in entries],
        "claims": [
            {
                "id": "more",
                "text": "Reno is faster",
                "metric": "goodput",
                "of": "reno",
                "against": "cubic",
                "relation": "higher",
            }
        ],
    }


def complaint(data: Data) -> str:
    with pytest.raises(ValueError, match="label") as caught:
        load_study(data)
    return str(caught.value)


def test_a_label_changes_no_trial(tmp_path: Path) -> None:
    plain, labelled = (Study.model_validate(study(**names)) for names in ({}, {"reno": "NewReno, 1999"}))
    keys = [[cell_key(cell, 1, "1") for cell in cells(one)] for one in (plain, labelled)]
    assert keys[0] == keys[1]
    first = lf.run(study(), out=tmp_path)
    parts = {part: part.read_bytes() for part in tmp_path.rglob("*.parquet")}
    again = lf.run(study(reno="NewReno, 1999"), out=tmp_path)
    assert {part: part.read_bytes() for part in tmp_path.rglob("*.parquet")} == parts
    assert again.records is not None
    assert first.records is not None
    assert again.records.equals(first.records)
    assert lf.load_run(tmp_path).cells[0].cell.label == "NewReno, 1999"


def test_labels_are_in_tables_charts_reports_and_verdicts(tmp_path: Path) -> None:
    run = lf.run(study(reno="NewReno, 1999"), out=tmp_path)
    assert "NewReno, 1999" in str(run.table())
    assert [row["series"] for row in run.drawing()["data"]["values"] if row["kind"] == "measured"] == [  # type: ignore[index]
        "NewReno, 1999",
        "TCP CUBIC",
    ]
    assert "goodput: NewReno, 1999 " in run.claims[0].detail
    assert ", cubic " in run.claims[0].detail
    figures = run.claims[0].figures
    assert figures is not None
    assert [value["name"] for value in figures["values"]] == ["reno", "cubic"]
    page = report.build(run)
    assert page.count("NewReno, 1999") > 4


def test_data_frames_have_names_and_labels(tmp_path: Path) -> None:
    run = lf.run(study(reno="NewReno, 1999"), out=tmp_path)
    for frame in (run.to_polars(), run.flows_to_polars()):
        pairs = frame.select("protocol", "protocol_label").unique(maintain_order=True).rows()
        assert pairs == [("reno", "NewReno, 1999"), ("cubic", "cubic")]
    assert [cell.get("label") for cell in run.to_json()["cells"]] == ["NewReno, 1999", None]
    assert "protocol_label" not in lf.run(study(), out=tmp_path).to_polars().columns


def test_a_label_that_is_the_full_name_of_another_protocol_stays_distinct() -> None:
    loaded = load_study(study(reno="TCP CUBIC"))
    assert series_names.series(loaded, cells(loaded)) == ["TCP CUBIC", "TCP CUBIC (cubic)"]


def test_wrong_labels_are_refused_in_a_line() -> None:
    unique = "labels must be unique"
    assert complaint(study(reno="A", cubic="A")).splitlines() == [
        f'study: protocols[cubic].label: "A" is also the label of reno; {unique}'
    ]
    assert f'protocols[reno].label: "cubic" is also the name of cubic; {unique}' in complaint(
        study(reno="cubic")
    )
    for wrong, why in (
        ("", "is empty"),
        ("  ", "is empty"),
        (" A", "one line without spaces around it"),
        ("A\nB", "one line"),
        (7, "must be text"),
    ):
        text = complaint(study(reno=wrong))  # type: ignore[arg-type]
        assert why in text
        assert "protocols[reno].label" in text
        assert len(text.splitlines()) == 1


def test_a_label_is_no_key_to_sweep() -> None:
    swept = study() | {"sweep": {"protocols.reno.label": ["A", "B"]}}
    assert "label" in complaint(swept)


def test_the_schema_and_objects_have_labels() -> None:
    validator = Draft202012Validator(study_schema())
    assert validator.is_valid(study(reno="NewReno, 1999"))
    assert not validator.is_valid(study(reno=""))
    traffic = {"name": "rival", "label": "x", "protocol": "cubic", "workload": {"kind": "bulk"}}
    assert not validator.is_valid(study() | {"traffic": [traffic]})
    entry = lf.Tcp("reno", name="old", label="NewReno, 1999")
    assert entry.to_study() == {
        "name": "old",
        "label": "NewReno, 1999",
        "kind": "tcp",
        "congestion": "reno",
    }
    assert lf.Tcp.from_toml(entry.to_toml()) == entry
    assert (
        load_study(study() | {"protocols": [entry], "claims": []}).protocols[0].display_name
        == "NewReno, 1999"
    )
    assert lf.simulate(entry, lf.Path(rate="10Mbit/s", delay="5ms"), "10kB").goodput > 0


def test_a_changed_label_keeps_the_folder_of_the_run() -> None:
    assert Overrides((("protocols.reno.label", "A"),)).variant == ""


def test_traces_have_labels() -> None:
    found = lf.trace("reno", study=study(reno="NewReno, 1999"))
    assert found.traces[0].name == "NewReno, 1999"
