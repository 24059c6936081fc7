"""The limit of open files: a receiver needs up to 512 for a sender that resumes as many."""

from __future__ import annotations

MOST = 65_536
"""Enough for 128 senders that resume 512 files each."""


def raise_limit() -> None:
    """Raises the soft limit to the hard limit, but to at most `MOST`."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
