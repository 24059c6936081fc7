"""One process of a trial in wall time: `python -P -m longfat.worlds._endpoint receive|relay|send|emulate`.

A trial in the world `relay` has three of them; `emulate` runs a whole trial in the world `netns`. Reads one
line from standard input, `{"spec": ..., "to": address, "names": ..., "trace": ...}`, and writes one line: the
address it listens at, or the trial's record. Exits when standard input closes: the parent exited or needs
it no longer. Imports few modules, since a trial starts three of these.
"""

from __future__ import annotations

import _thread
import json
import os
import sys

from longfat import _native


def _exit_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _enter_user_namespace() -> str | None:
    """Gets the permissions to emulate, before a second thread starts; returns the obstacle, if any."""
    try:
        _native.enter_user_namespace()
    except OSError as error:
        return str(error)
    return None


def main() -> None:
    """Runs the role named on the command line."""
    role = sys.argv[1] if len(sys.argv) == 2 else ""
    if role not in ("receive", "relay", "send", "emulate"):
        sys.exit("usage: python -P -m longfat.worlds._endpoint receive|relay|send|emulate")
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 65536)
        if not chunk:
            return
        line += chunk
    obstacle = _enter_user_namespace() if role == "emulate" else None
    _thread.start_new_thread(_exit_with_parent, ())
    # Standard output carries the answer, not what classes of the study print.
    sys.stdout = sys.stderr
    try:
        request = json.loads(line)
        spec = json.dumps(request["spec"])
        if obstacle is not None:
            answer = json.dumps({"metrics": None, "error": obstacle})
        elif role == "emulate":
            trace = request.get("trace")
            if trace is None:
                answer = _native.emulate(spec, request["names"])
            else:
                answer = _native.emulate_traced(spec, request["names"], **trace)
        else:
            answer = _native.endpoint(role, spec, request["to"])
    except (KeyError, TypeError, ValueError, OSError) as error:
        answer = json.dumps({"metrics": None, "error": f"{role}: {error}"})
    if answer:
        os.write(1, answer.encode() + b"\n")


if __name__ == "__main__":
    main()
