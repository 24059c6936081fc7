"""The process that runs single trials for a worker.

It reads a pickled request from standard input and writes a pickled answer for each trial. It ends when its
standard input closes, so it does not outlive the worker.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading

from longfat.cluster.single import READY


def _exit_at_end_of_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Answers one request."""
    # What a trial prints goes to standard error.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def answer(value: object) -> None:
        pickle.dump(value, output)
        output.flush()

    batch, contents, folder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the worker
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    answer(READY)
    try:
        local = batch.localised(contents, folder)
        for place in range(len(batch.numbers)):
            answer(local.run_one(place))
    except Exception as error:  # noqa: BLE001 - the worker raises it again
        answer(error)
    os._exit(0)


if __name__ == "__main__":
    main()
