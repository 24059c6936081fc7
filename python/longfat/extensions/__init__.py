"""Protocol parts that users write in Python: controllers, queues, schedulers, path policies."""
