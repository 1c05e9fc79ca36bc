"""
A private cache of blobs that are dear to make: compiled code, above all.

What is read from here is executed by the host, so nobody else may be able to write it: the directory is
refused unless it is the user's own. Inside it, speed wins over suspicion: entries are not hashed on each
read. An entry is synced to the disk before it gets its name, and its size is kept beside it, so one that a
power cut or a full disk has shortened is made anew.
"""

from runner.cache.blobs import BlobCache, default_cache_root
from runner.cache.counter import next_number

__all__ = ["BlobCache", "default_cache_root", "next_number"]
