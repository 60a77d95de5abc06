import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.rocksdb.*;

/**
 * Writes a store of RocksDB 11.8, and DIR/stats.txt with what RocksDB says of it in the end:
 * java -cp rocksdbjni-11.8.1.jar rocksdb11.java DIR.
 *
 * The name of the directory chooses the store:
 *
 * rocksdbjni          one column family by levels of dynamic size, one universal; a tenth deletes
 * rocksdbjni-heldout  other settings, chosen after the replay was finished
 */
class Rocksdb11 {
    static final Random draw = new Random(1);

    static ColumnFamilyOptions family(long memtable, long table, long base, double ratio) {
        return new ColumnFamilyOptions()
            .setCompressionType(CompressionType.NO_COMPRESSION)
            .setWriteBufferSize(memtable)
            .setTargetFileSizeBase(table)
            .setMaxBytesForLevelBase(base)
            .setMaxBytesForLevelMultiplier(ratio);
    }

    static ColumnFamilyOptions universal(long memtable, int runs, int sizeRatio) {
        CompactionOptionsUniversal options = new CompactionOptionsUniversal();
        options.setSizeRatio(sizeRatio);
        return family(memtable, 64 << 20, 256 << 20, 10)
            .setCompactionStyle(CompactionStyle.UNIVERSAL)
            .setLevel0FileNumCompactionTrigger(runs)
            .setCompactionOptionsUniversal(options);
    }

    /** Writes to `keys` keys at random, slowly enough for compactions to keep up. */
    static void overwrite(RocksDB store, ColumnFamilyHandle family, int writes, int keys,
            int valueBytes, double deletes) throws Exception {
        try (WriteOptions options = new WriteOptions()) {
            byte[] value = new byte[valueBytes];
            for (int number = 0; number < writes; number++) {
                byte[] key = String.format("%016d", draw.nextInt(keys)).getBytes();
                if (draw.nextDouble() < deletes) {
                    store.delete(family, options, key);
                } else {
                    draw.nextBytes(value);
                    store.put(family, options, key, value);
                }
                if (number % 200 == 199) {
                    Thread.sleep(10);
                }
            }
        }
    }

    static String nameOf(ColumnFamilyHandle handle) {
        try {
            return new String(handle.getName());
        } catch (RocksDBException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        boolean isHeldOut = args[0].endsWith("heldout");
        List<ColumnFamilyDescriptor> families = new ArrayList<>();
        if (isHeldOut) {
            families.add(new ColumnFamilyDescriptor("default".getBytes(),
                family(300_000, 400_000, 1_200_000, 3).setLevelCompactionDynamicLevelBytes(false)
                    .setCompactionPriority(CompactionPriority.OldestSmallestSeqFirst)
                    .setLevel0FileNumCompactionTrigger(3)));
            families.add(new ColumnFamilyDescriptor("second".getBytes(), universal(400_000, 7, 1)));
        } else {
            families.add(new ColumnFamilyDescriptor("default".getBytes(),
                family(512 << 10, 512 << 10, 2 << 20, 4)));
            families.add(
                new ColumnFamilyDescriptor("second".getBytes(), universal(512 << 10, 5, 10)));
        }
        DBOptions options = new DBOptions()
            .setCreateIfMissing(true)
            .setCreateMissingColumnFamilies(true)
            .setStatistics(new Statistics())
            .setStatsDumpPeriodSec(20);
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        RocksDB store = RocksDB.open(options, args[0], families, handles);
        if (isHeldOut) {
            overwrite(store, handles.get(0), 120_000, 25_000, 150, 0.05);
            overwrite(store, handles.get(1), 100_000, 60_000, 250, 0.0);
        } else {
            overwrite(store, handles.get(0), 100_000, 30_000, 200, 0.1);
            overwrite(store, handles.get(1), 200_000, 40_000, 200, 0.1);
        }
        store.flush(new FlushOptions(), handles);
        // Until nothing is compacted any more.
        for (int quiet = 0; quiet < 5; ) {
            Thread.sleep(300);
            boolean isBusy = false;
            for (ColumnFamilyHandle handle : handles) {
                isBusy |= store.getLongProperty(handle, "rocksdb.num-running-compactions") > 0
                    || store.getLongProperty(handle, "rocksdb.num-running-flushes") > 0;
            }
            quiet = isBusy ? 0 : quiet + 1;
        }
        StringBuilder stats = new StringBuilder();
        for (ColumnFamilyHandle handle : handles) {
            new TreeMap<>(store.getMapProperty(handle, "rocksdb.cfstats")).forEach((name, value) -> {
                if (name.startsWith("compaction.Sum.")) {
                    stats.append(nameOf(handle) + " " + name + " " + value + "\n");
                }
            });
        }
        Files.writeString(Path.of(args[0], "stats.txt"), stats.toString());
        // The store is left open: closing it could begin a compaction.
        Runtime.getRuntime().halt(0);
    }
}
