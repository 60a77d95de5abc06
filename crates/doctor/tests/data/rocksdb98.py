"""Writes a store of RocksDB 9.8 with the package rocksdict: rocksdb98.py DIR."""

import random
import sys
import time

from rocksdict import DBCompressionType, Options, Rdict

options = Options(raw_mode=True)
options.create_if_missing(True)
options.set_write_buffer_size(512 << 10)
options.set_target_file_size_base(512 << 10)
options.set_max_bytes_for_level_base(2 << 20)
options.set_max_bytes_for_level_multiplier(4)
options.set_compression_type(DBCompressionType.none())
options.set_stats_dump_period_sec(2)

draw = random.Random(1)
store = Rdict(sys.argv[1], options)
for number in range(120_000):
    key = b"%016d" % draw.randrange(30_000)
    if number % 20 == 19:
        store.delete(key)
    else:
        store.put(key, draw.randbytes(200))
    if number % 200 == 199:
        time.sleep(0.01)  # Merges keep up.
store.flush()
time.sleep(2)
store.close()
