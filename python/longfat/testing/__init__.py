"""Tests of transport programs and protocols over emulated and simulated paths, with confidence intervals.

The pytest plugin of this package provides the fixtures `longfat_relay`, `longfat_tcp_relay` and
`longfat_emulation`.
"""

from longfat.testing.assertions import assert_at_least, assert_at_most, assert_claim
from longfat.testing.emulation import Emulated
from longfat.testing.versions import (
    UndecidedComparisonWarning,
    VersionComparison,
    assert_no_worse,
    compare_versions,
)

__all__ = [
    "Emulated",
    "UndecidedComparisonWarning",
    "VersionComparison",
    "assert_at_least",
    "assert_at_most",
    "assert_claim",
    "assert_no_worse",
    "compare_versions",
]
