"""The client, written once: package ``_sync`` is made from this one by tools/unasync.py."""
