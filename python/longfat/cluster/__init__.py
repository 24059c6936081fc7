"""Runs trials on a Dask cluster (`longfat[cluster]`): on this machine, or at a scheduler's address."""

from longfat.cluster.connection import ClusterError, Connection, Target
from longfat.cluster.machines import Cluster, open_machines

__all__ = ["Cluster", "ClusterError", "Connection", "Target", "open_machines"]
