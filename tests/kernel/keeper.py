"""A process that keeps a controller in the kernel until it is killed. It prints the controller as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time

from longfat.kernel.controllers import Controller, ensure, listed


def keep(name: str, sibling: bool) -> None:
    with ensure(name, source="bpf") as controller:
        assert controller.holder is not None
        forked = os.fork() if sibling else None
        if forked == 0:
            # The child inherits all pipes of its parent and survives it.
            time.sleep(600)
        holder = controller.holder
        report = {
            "name": controller.kernel_name,
            "link": holder.link,
            "map": holder.map,
            "pid": holder.pid,
            "sibling": forked,
        }
        print(json.dumps(report), flush=True)
        time.sleep(600)


def keep_from_thread(name: str) -> None:
    """Registers from a thread that exits at once; the controller belongs to the process."""
    with contextlib.ExitStack() as stack:
        controllers: list[Controller] = []
        registering = threading.Thread(
            target=lambda: controllers.append(stack.enter_context(ensure(name, source="bpf")))
        )
        registering.start()
        registering.join()
        time.sleep(0.5)
        controllers[0].verify()
        print(json.dumps({"name": controllers[0].kernel_name, "listed": listed()}), flush=True)


if __name__ == "__main__":
    if sys.argv[2] == "thread":
        keep_from_thread(sys.argv[1])
    else:
        keep(sys.argv[1], sibling=sys.argv[2] == "sibling")
