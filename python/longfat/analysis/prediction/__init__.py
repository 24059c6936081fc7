"""Which closed form speaks of a trial, and what it says.

One module for each family of forms; each is asked in turn, and the first that has something to say is heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longfat.analysis.prediction import arq
from longfat.analysis.prediction.arq import ARQ_HEADER, UDP_IPV4, Setting, numbers
from longfat.analysis.prediction.model import Prediction, nothing

__all__ = ["ARQ_HEADER", "GOODPUT", "UDP_IPV4", "Prediction", "Setting", "numbers", "predict"]

GOODPUT = "goodput_bps"


def predict(spec: Mapping[str, Any], metric: str = GOODPUT) -> Prediction:
    """What theory expects of a metric (its column in records) in a trial of this specification."""
    if metric == GOODPUT:
        return arq.predict(spec)
    return nothing(f"theory does not speak of {metric}")
