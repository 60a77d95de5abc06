"""Writes a store of LevelDB 1.22 with the package plyvel, and DIR/stats.txt with what LevelDB says
of it in the end: leveldb122.py DIR.

The name of the directory chooses the store:

leveldb           one opening, overwrites in random order
leveldb-reopened  a load in key order, an opening, overwrites with deletes, a compaction by hand
leveldb-heldout   other settings, chosen after the replay was finished
"""

import os
import random
import sys
import time

import plyvel

directory = sys.argv[1]
name = os.path.basename(directory)
draw = random.Random(1)
written = 0


def opened(**settings):
    return plyvel.DB(directory, create_if_missing=True, compression=None, **settings)


def rest(store):
    """Waits until nothing is compacted any more."""
    before = None
    while before != store.get_property(b"leveldb.stats"):
        before = store.get_property(b"leveldb.stats")
        time.sleep(1.5)


def write(store, keys, value_bytes, deletes=0.0, pause=200):
    """Writes to each of `keys`, slowly enough for compactions to keep up."""
    global written
    for number, key in enumerate(keys):
        if draw.random() < deletes:
            store.delete(b"%016d" % key)
        else:
            store.put(b"%016d" % key, draw.randbytes(value_bytes))
        if number % pause == pause - 1:
            time.sleep(0.01)
    written += len(keys)


def overwrites(keys, count):
    return [draw.randrange(keys) for _ in range(count)]


if name == "leveldb":
    store = opened(write_buffer_size=1 << 20)
    write(store, overwrites(150_000, 500_000), 200)
elif name == "leveldb-reopened":
    settings = {"write_buffer_size": 512 << 10, "max_file_size": 1 << 20}
    store = opened(**settings)
    write(store, range(60_000), 300)
    rest(store)
    store.close()
    store = opened(**settings)
    write(store, overwrites(60_000, 90_000), 300, deletes=0.1)
    rest(store)
    store.compact_range(start=b"%016d" % 0, stop=b"%016d" % 20_000)
else:
    store = opened(write_buffer_size=900_000, max_file_size=1_200_000)
    write(store, overwrites(250_000, 400_000), 170)
    write(store, overwrites(90_000, 200_000), 110, deletes=0.1)

rest(store)
with open(os.path.join(directory, "stats.txt"), "w", encoding="ascii") as stats:
    stats.write(store.get_property(b"leveldb.stats").decode())
    stats.write(f"written {written}\n")
    # Keys and files, as they are when LevelDB has deleted what it does not need.
    for file in sorted(os.listdir(directory)):
        if file.endswith((".ldb", ".sst")):
            stats.write(f"{file} {os.path.getsize(os.path.join(directory, file))}\n")
# The store is left open: closing it could begin a compaction.
os._exit(0)
