"""The limit of open files."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import resource
from longfat.cli import open_files
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
open_files.raise_limit()
soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
assert soft == (open_files.MOST if hard == resource.RLIM_INFINITY else min(hard, open_files.MOST)), soft
"""


def test_the_soft_limit_rises_to_the_hard_one() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
