"""Made of package ``_async`` by tools/unasync.py."""
