"""This process and this machine: files, progress, parameters, sockets, folders."""
