"""`python -m longfat` runs the command `longfat`.

Prefer `longfat` or `python -P -m longfat` in folders of other users: without `-P` the interpreter itself
imports modules (`warnings`, `contextlib`) from the current folder before any code of this package runs.
"""

import sys

if __name__ == "__main__":
    # `-m` puts the current folder first on the import path: a `json.py` there would replace the standard
    # library's, also for root.
    if not sys.flags.safe_path:
        del sys.path[0]

    from longfat.cli import main

    main()
