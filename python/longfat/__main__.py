"""`python -m longfat` is the command `longfat`."""

import sys

if __name__ == "__main__":
    # `-m` puts the current folder first on the import path: a `json.py` there would run instead of the
    # standard library's, also for root.
    if not sys.flags.safe_path:
        del sys.path[0]

    from longfat.cli import main

    main()
