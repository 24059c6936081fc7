"""Bundles: a run as one archive that another person can repeat elsewhere.

study.toml           the study as run, with relative file names
files/               its traces, tables and Python files
run.json, records/   the run, as in its folder
report.html          the report
requirements.txt     the versions of all Python packages
README.md            what it is, and the commands that repeat it
CITATION.cff, citation.bib
MANIFEST.json        format, version, commit, and a hash of each file
"""
