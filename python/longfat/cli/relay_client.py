"""Requests to the control interface of a running relay."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

_TIMEOUT_S = 10.0
_ACTIONS = ("set", "outage", "drop", "reset", "report")
_USAGE = "set KEY=VALUE..., outage TIME [DIRECTION], outage end, drop [COUNT [DIRECTION]], reset, report"


def change(action: Sequence[str], control: str, token: str) -> dict[str, Any]:
    """Applies an action; returns what to print. Raises ValueError, and OSError if there is no relay."""
    method, path, body = request_of(action)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{control}{path}", data, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    # A proxy of the environment must not receive the token.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            found = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        try:
            reason = json.loads(error.read())["error"]
        except (ValueError, KeyError, TypeError):
            reason = f"HTTP status {error.code}"
        raise ValueError(reason) from None
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise OSError(f"no relay with --control at {control}: {reason}") from None
    return found if action[0] in ("report", "set") else {}


def request_of(action: Sequence[str]) -> tuple[str, str, dict[str, Any] | None]:
    """Returns method, path and body of the request for an action. Raises ValueError.

    >>> request_of(["set", "loss=2%", "reverse.delay=80ms"])
    ('PATCH', '/path', {'loss': '2%', 'reverse.delay': '80ms'})
    >>> request_of(["outage", "2s", "forward"])
    ('POST', '/outage', {'duration': '2s', 'direction': 'forward'})
    >>> request_of(["drop", "3"]), request_of(["report"])
    (('POST', '/drops', {'count': 3}), ('GET', '/report', None))
    """
    from longfat.study import read_setting

    match list(action):
        case ["set", *settings] if settings:
            return "PATCH", "/path", dict(read_setting(text, "set", "loss=2%") for text in settings)
        case ["outage", "end"]:
            return "DELETE", "/outage", None
        case ["outage", duration]:
            return "POST", "/outage", {"duration": duration}
        case ["outage", duration, direction]:
            return "POST", "/outage", {"duration": duration, "direction": direction}
        case ["drop"]:
            return "POST", "/drops", {}
        case ["drop", count] if count.isdecimal():
            return "POST", "/drops", {"count": int(count)}
        case ["drop", count, direction] if count.isdecimal():
            return "POST", "/drops", {"count": int(count), "direction": direction}
        case ["reset"]:
            return "POST", "/resets", None
        case ["report"]:
            return "GET", "/report", None
    wrong = "wrong arguments" if action[0] in _ACTIONS else "unknown action"
    raise ValueError(f"{' '.join(action)}: {wrong}; allowed: {_USAGE}")
