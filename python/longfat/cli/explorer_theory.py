"""Closed forms for the page of `longfat explore`."""

from __future__ import annotations

import json
from typing import Any

from longfat.analysis.prediction import ARQ_KINDS, Prediction, pipe, predict

ENDLESS = {"kind": "file", "size": "1GB"}
"""The workload of the closed forms for ARQ, which hold for an endless stream."""
METRICS = {"goodput": "goodput_bps", "queue": "queue_mean_packets"}


def reply(request: bytes) -> str:
    """Returns `{"ok": ...}` with the predictions for a trial's specification, or `{"error": "..."}`."""
    try:
        spec = json.loads(request)
        if spec["protocol"]["kind"] in ARQ_KINDS:
            spec["workload"] = ENDLESS
        content: dict[str, Any] = {name: _tables(predict(spec, metric)) for name, metric in METRICS.items()}
        return json.dumps({"ok": {**content, "pipe": pipe(spec)}})
    except RecursionError:
        return json.dumps({"error": "no theory: the request is nested too deeply"})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return json.dumps({"error": f"no theory: {error}"})


def _tables(prediction: Prediction) -> dict[str, Any]:
    return {
        "value": prediction.value,
        "exact": prediction.exact,
        "note": prediction.note,
        "bound": prediction.bound,
        "forms": dict(prediction.forms),
    }
