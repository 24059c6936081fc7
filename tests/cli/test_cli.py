from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.conftest import Cli, command, document, only_lines
from tests.waiting import PATIENCE_S

from longfat.api.runs import load_run
from longfat.cli import INTERRUPTED, main
from longfat.cli.app import app
from longfat.study import builtin

Data = dict[str, Any]
Write = Callable[..., Path]


@pytest.mark.slow
def test_several_studies_are_run_one_after_the_other(cli: Cli, write: Any, data: Data) -> None:
    one, other = write(data, "one.toml"), write(data | {"seed": 8}, "other.toml")
    results = json.loads(cli("run", one, other, "--json").stdout)
    assert [result["study"] for result in results] == ["one", "other"]
    assert results[0]["cells"] != results[1]["cells"]
    assert cli("run", one, other).stdout.count("Report: ") == 2
    refused = cli("run", one, other, "--out", "x", ok=False)
    assert refused.returncode != 0
    assert "--out is the folder of one run" in refused.stderr
    # A mistake in the second study prevents the run of the first.
    wrong = write(data | {"repeats": 0}, "wrong.toml")
    done = cli("run", one, wrong, "--fresh", ok=False)
    line = wrong.read_text().splitlines().index("repeats = 0") + 1
    assert f"wrong.toml:{line}: repeats: 0 is too small" in done.stderr
    assert "trials to run" not in done.stderr


def test_standard_output_has_one_json_document_only(data: Data, write: Write, cli: Cli) -> None:
    done = cli("run", write(data), "--json")
    result = document(done)
    assert list(result) == ["study", "run", "cells", "claims", "verdict"]
    assert result["study"] == "small"
    assert result["run"] == str(Path("runs") / "small")
    assert len(result["cells"]) == 6
    for cell in result["cells"]:
        deterministic = ["deterministic"] if cell["params"] == {"path.loss": "0%"} else []
        assert list(cell) == ["world", "protocol", "params", "values", "n", "metrics", *deterministic]
        assert cell["n"] == 4
        for interval in cell["metrics"].values():
            assert list(interval) == ["mean", "low", "high"]
            assert interval["low"] <= interval["mean"] <= interval["high"]
    assert [set(claim) for claim in result["claims"]] == [
        {"id", "text", "world", "verdict", "detail", "figures"}
    ]
    assert "Report: runs/small/report.html" in done.stderr


def test_mistakes_leave_standard_output_empty(data: Data, write: Write, cli: Cli) -> None:
    data["path"]["dealy"] = "5ms"
    file = write(data)
    done = cli("run", file, "--json", ok=False)
    assert (done.returncode, done.stdout) == (2, "")
    line = file.read_text().splitlines().index('dealy = "5ms"') + 1
    only_lines(done.stderr, [f"longfat: {file}:{line}: path.dealy: unknown key"])


def test_one_trial_has_no_interval_and_the_document_stays_json(data: Data, write: Write, cli: Cli) -> None:
    done = cli("run", write(data), "--json", "--repeats", 1)
    assert "NaN" not in done.stdout
    assert document(done)["cells"][0]["metrics"]["goodput_bps"]["low"] is None


def test_the_output_has_table_verdicts_and_report_file(
    data: Data, write: Write, cli: Cli, tmp_path: Path
) -> None:
    done = cli("run", write(data))
    assert "A small study" in done.stdout
    assert "Selective repeat is never behind" in done.stdout
    assert done.stdout.rstrip().endswith("Report: runs/small/report.html")
    assert (tmp_path / "runs" / "small" / "report.html").is_file()


def test_same_seed_same_bits(data: Data, write: Write, cli: Cli) -> None:
    study = write(data)
    first = document(cli("run", study, "--json", "--out", "a", "--jobs", 1))
    second = document(cli("run", study, "--json", "--out", "b", "--jobs", 3))
    assert first["cells"] == second["cells"]
    other = document(cli("run", study, "--json", "--out", "c", "--seed", 8))
    assert first["cells"] != other["cells"]


def test_options_change_what_is_run(data: Data, write: Write, cli: Cli) -> None:
    done = cli(
        "run",
        write(data),
        "--json",
        "--repeats",
        2,
        "--set",
        "path.loss=3%",
        "--set",
        "protocols.sr.window=8",
    )
    result = document(done)
    assert [(c["protocol"], c["params"], c["n"]) for c in result["cells"]] == [("gbn", {}, 2), ("sr", {}, 2)]


@pytest.mark.slow
def test_quick_runs_are_marked_and_stored_separately(
    data: Data, write: Write, cli: Cli, tmp_path: Path
) -> None:
    study = write({**data, "repeats": 21})
    result = document(cli("run", study, "--json", "--quick"))
    assert result["quick"] is True
    assert result["run"] == str(Path("runs") / "small-quick")
    assert result["cuts"] == ["20 of 21 trials"]
    assert all(cell["n"] == 20 for cell in result["cells"])
    assert "repeats = 20" in (tmp_path / "runs" / "small-quick" / "study.toml").read_text()
    again = cli("run", study, "--quick")
    line = "Quick look: 20 of 21 trials. Without --quick the study runs as written, and verdicts can differ."
    assert line in again.stdout
    assert "quick look: 20 of 21 trials" in again.stderr
    assert load_run(tmp_path / "runs" / "small-quick").study.cuts == ["20 of 21 trials"]


@pytest.mark.slow
def test_too_few_trials_for_the_claims_are_named_before_they_run(data: Data, write: Write, cli: Cli) -> None:
    claim = {
        "id": "c",
        "text": "x",
        "metric": "goodput",
        "of": "sr",
        "relation": "at-least",
        "value": "1bit/s",
    }
    study = write({**data, "claims": [claim]})
    lines = cli("run", study, "--repeats", "2").stderr.splitlines()
    assert lines[0] == "sim: 2 trials per cell cannot decide claims: at least 3 required (--repeats)"
    assert "cannot decide" not in cli("run", study, "--repeats", "3").stderr


@pytest.mark.slow
def test_fresh_starts_over(data: Data, write: Write, cli: Cli) -> None:
    study = write(data)
    cli("run", study)
    assert "0 trials to run, 24 already there" in cli("run", study).stderr
    assert "24 trials to run\n" in cli("run", study, "--fresh").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "Missing argument 'STUDY'"),
        (["run", "nothing.toml"], "nothing.toml: is neither a file nor a built-in study"),
        (["run", "."], ".: is a folder"),
        (["run", "STUDY", "--sed", "1"], "No such option: --sed"),
        (["run", "STUDY", "--repeats", "x"], "--repeats"),
        (["run", "STUDY", "--jobs", "0"], "--jobs"),
        (["run", "STUDY", "--repeats", "0"], "repeats: 0 is too small"),
        (
            ["run", "STUDY", "--world", "sin"],
            'worlds: "sin" is not a world; did you mean "sim"? allowed: sim, relay, netns',
        ),
        (["run", "STUDY", "--set", "path.loss=2"], "--set: path.loss: "),
        (["run", "STUDY", "--set", "path.los=2%"], "--set: path.los: "),
        (["run", "STUDY", "--seed", "-1"], "seed: -1 is too small"),
        (["run", "STUDY", "--out", "STUDY"], "is a file"),
        (["runn"], "No such command 'runn'"),
        (["list", "protocolls"], '"protocolls" is not a topic; allowed: studies, '),
        (["--nothing"], "No such option: --nothing"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    data: Data, write: Write, cli: Cli, tmp_path: Path, arguments: list[str], words: str
) -> None:
    study = str(write(data))
    done = cli(*[study if a == "STUDY" else a for a in arguments], ok=False)
    assert done.returncode == 2
    assert done.stdout == ""
    only_lines(done.stderr, [words])
    assert not (tmp_path / "runs").exists(), "no partial output"


def test_a_folder_that_cannot_be_written_is_one_line(data: Data, write: Write, cli: Cli) -> None:
    done = cli("run", write(data), "--out", "/proc/nowhere", ok=False)
    assert done.returncode == 1
    only_lines(done.stderr, ["longfat: /proc/nowhere: "])


def test_a_run_in_which_nothing_succeeds_fails(data: Data, write: Write, cli: Cli) -> None:
    data |= {"sweep": {}, "claims": [], "repeats": 2}
    data["path"]["loss"] = "100%"
    done = cli("run", write(data), "--json", ok=False)
    assert done.returncode == 1
    result = document(done)
    assert all(cell["n"] == 0 and sum(cell["failures"].values()) == 2 for cell in result["cells"])
    assert "all trials failed" in done.stderr


def test_the_schema_is_json(cli: Cli) -> None:
    schema = json.loads(cli("schema").stdout)
    assert {"title", "path", "workload", "protocols", "sweep", "claims"} <= set(schema["properties"])


def test_list_prints_an_index_on_one_screen(cli: Cli) -> None:
    lines = cli("list").stdout.splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 100 for line in lines)
    names = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    for topic in names:
        assert cli("list", topic).stdout.count("\n") > 2, topic
    assert names["topologies"] == "dumbbell, parking-lot, star, tree, leaf-spine, fat-tree and 3 more"
    assert names["losses"] == "bernoulli, gilbert-elliott, every, packets"


@pytest.mark.parametrize(
    ("topic", "contents"),
    [
        ("studies", list(builtin())),
        ("protocols", ["go-back-n", "selective-repeat", "stop-and-wait", "window"]),
        ("controllers", ["cubic", "bbr", "alpha"]),
        ("schedulers", ["min-rtt", "blest"]),
        ("queue", ["fq-codel", "max_threshold"]),
        ("losses", ["gilbert-elliott", "enter_bad"]),
        ("topologies", ["dumbbell", "parking-lot"]),
        ("topology", ["dumbbell"]),
        ("workloads", ["request-response"]),
        ("presets", ["lte", "dsl"]),
        ("metrics", ["goodput", "bit/s"]),
        ("claims", ["not-lower", "against"]),
        ("worlds", ["netns", "wall time"]),
        ("mtu", ["[path] mtu", "[topology] mtu"]),
    ],
)
def test_list_prints_a_topic(cli: Cli, topic: str, contents: list[str]) -> None:
    shown = cli("list", topic).stdout
    assert [text for text in contents if text not in shown] == []


def test_list_prints_the_values_of_a_study(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        'title = "Own"\nrepeats = 4\nprotocols = ["reno"]\n'
        'path = { rate = "10Mbit/s", delay = "10ms", queue = "2BDP" }\n'
        'workload = { kind = "bulk", duration = "100RTT", warm_up = "path.delay" }\n'
        'sweep = { "path.delay" = ["10ms", "20ms"] }\n'
    )
    shown = cli("list", str(tmp_path / "own.toml")).stdout
    assert "Own (1 protocol, 2 cells, 8 trials; worlds: sim)" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["path.queue", "2BDP", "50000B,", "100000B"] in rows
    assert ["workload.duration", "100RTT", "2000ms,", "4000ms"] in rows
    assert ["workload.warm_up", "path.delay", "10ms,", "20ms"] in rows
    changed = cli("list", str(tmp_path / "own.toml"), "--set", "path.rate=20Mbit/s").stdout
    assert ["path.queue", "2BDP", "100000B,", "200000B"] in [line.split() for line in changed.splitlines()]
    many = cli("list", str(tmp_path / "own.toml"), "--set", f"path.delay={[f'{n}ms' for n in range(1, 100)]}")
    assert "…, 99ms (99 values)" in many.stdout
    assert "Share of one BBRv1 flow" in cli("list", "published/bbr-share").stdout
    refused = cli("list", "queue", "--set", "path.rate=1Mbit/s", ok=False)
    assert 'is for a study, and "queue" is none' in refused.stderr


def test_list_prints_json(cli: Cli) -> None:
    index = json.loads(cli("list", "--json").stdout)
    assert "lte" in index["presets"]
    assert index["studies"] == list(builtin())
    found = json.loads(cli("list", "presets", "queue", "--json").stdout)
    assert list(found) == ["presets", "queue"]
    (table,) = found["presets"]
    assert {row["name"] for row in table["rows"]} == set(index["presets"])
    assert any("codel" in row["key"] for row in found["queue"][0]["rows"])


@pytest.mark.parametrize("command", ["shell", "relay"])
def test_the_users_end_is_the_subscriber_in_the_help_too(cli: Cli, command: str) -> None:
    words = " ".join(cli(command, "--help").stdout.split())
    assert "--subscriber" in words
    assert "(forward is the upload); default near." in words


def test_an_unknown_topic_has_a_hint(cli: Cli) -> None:
    done = cli("list", "controler", ok=False)
    assert done.returncode == 2
    only_lines(done.stderr, ['did you mean "controllers"?'])


def _commands() -> dict[str, Any]:
    """Returns all commands by name."""
    root: Any = typer.main.get_command(app)
    found = dict(root.commands)
    found |= {f"net {name}": one for name, one in found["net"].commands.items()}
    return found


@pytest.mark.parametrize("name", sorted(_commands()))
def test_each_command_has_one_sentence_and_two_examples(name: str) -> None:
    sentence, _, examples = str(_commands()[name].help).partition("\n\n")
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert not [one.metavar for one in _commands()[name].params if "Annotated" in str(one.metavar)]
    lines = [line.strip() for line in examples.splitlines() if "longfat " in line]
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line.replace("sudo ", "").partition(" >")[0])
        _, first, *rest = words
        command = _commands()[first]
        if first == "net":
            command = command.commands[rest.pop(0) if rest[0] in command.commands else "open"]
        assert words[0] == "longfat"
        command.make_context(first, rest)


def test_the_list_of_commands_has_their_sentences(cli: Cli) -> None:
    shown = " ".join(cli("--help").stdout.split())
    for name, found in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        sentence = " ".join(str(found.help).partition("\n\n")[0].split())
        assert f" {name} {sentence}" in shown


@pytest.mark.parametrize("name", sorted(_commands()))
def test_each_option_has_a_noun_phrase(name: str) -> None:
    for option in _commands()[name].params:
        text = str(getattr(option, "help", "") or "")
        if not option.name.startswith(("help", "protocol_", "path_")):
            assert text, option.name
            assert not text.startswith(("Print ", "Write ", "Show ", "Take ", "Set ", "Run ")), text


def test_help_and_version(cli: Cli) -> None:
    assert "run" in cli("--help").stdout
    assert cli().stdout == cli("--help").stdout
    assert "--quick" in cli("run", "--help").stdout
    assert cli("--version").stdout.startswith("longfat 0.")


def test_the_command_line_starts_without_the_heavy_packages() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['longfat', '--help']\n"
        "from longfat.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'altair', 'scipy', 'numpy', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_output_pipe_is_no_error() -> None:
    process = subprocess.Popen(command("schema"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(PATIENCE_S)
    process.stderr.close()
    assert errors == b""


def test_ctrl_c_at_the_very_start_is_one_line() -> None:
    # The signal arrives during the import of the first package.
    begin = (
        "import signal, sys\n"
        "from longfat.cli import main\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "sys.argv = ['longfat', 'list']\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", begin], capture_output=True, check=False)
    line = b"longfat: interrupted before there was a result\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", line)


def test_a_mistake_names_the_command_whose_help_shows_more(cli: Cli) -> None:
    for words, reported in (
        (["run"], "(see longfat run --help)"),
        (["net", "stop", "a", "b"], "(see longfat net stop --help)"),
        (["list", "x"], 'longfat: list: "x" is not a topic; allowed: studies, worlds, '),
        (["mptcp", "--policy", "fsfss"], 'longfat: --policy: "fsfss" is not known: '),
        (["mptcp", "--policy", '{ kind = "fsfs", x = 1 }'], "longfat: --policy: x: unknown key"),
        (["trace", "arq/loss", "--out", "x.gif"], "--out x.gif: unknown suffix; allowed: svg,"),
    ):
        done = cli(*words, ok=False)
        assert done.returncode == 2
        only_lines(done.stderr, [reported])


def test_help_exits_with_0_and_cuts_no_line(cli: Cli) -> None:
    for words in ([], ["--help"], ["net"], ["net", "--help"]):
        shown = cli(*words)
        assert shown.stdout.startswith("Usage: longfat")
        assert "..." not in shown.stdout.partition("Commands:")[2]
        assert shown.stderr == ""


def test_ctrl_c_before_a_result_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longfat.api.links._resolve", interrupted)
    monkeypatch.setattr(sys, "argv", ["longfat", "path", "127.0.0.1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == "longfat: interrupted before there was a result\n"


def test_key_prints_json_without_the_secret(cli: Cli, tmp_path: Path) -> None:
    identity, trusted = tmp_path / "identity", tmp_path / "trusted"
    first, again = (json.loads(cli("key", "--identity", identity, "--json").stdout) for _ in range(2))
    assert first == {**again, "is_new": True}
    assert (again["identity"], again["is_new"]) == (str(identity), False)
    secret = identity.read_text().split()[-1]
    assert secret not in json.dumps(first)
    words = ("key", "--trust", first["public_key"], "--name", "laptop", "--trusted", trusted, "--json")
    added, known = (json.loads(cli(*words).stdout) for _ in range(2))
    assert added == {**known, "is_new": True}
    assert (known["name"], known["is_new"]) == ("laptop", False)


def test_trace_prints_rows_as_json(cli: Cli) -> None:
    words = ("trace", "arq/loss", "--protocol", "gbn")
    rows = json.loads(cli(*words, "--json").stdout)
    assert {"send", "receive"} <= {row["what"] for row in rows}
    assert rows == json.loads(cli(*words, "--format", "json").stdout)
    done = cli(*words, "--json", "--format", "svg", ok=False)
    assert (done.returncode, "--json contradicts --format svg" in done.stderr) == (2, True)


@pytest.mark.xdist_group("machine")  # cleans what other tests left on purpose
def test_clean_prints_json(cli: Cli) -> None:
    assert set(json.loads(cli("clean", "--json").stdout)) == {"stopped", "left"}
