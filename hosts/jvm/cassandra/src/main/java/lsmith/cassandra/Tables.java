package lsmith.cassandra;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import lsmith.Pick;
import lsmith.Runs;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.View;
import org.apache.cassandra.io.sstable.SSTableIdFactory;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * The SSTables of one strategy, and what a policy wants to know of them.
 *
 * <p>The level of a table is in its own metadata: the merge that made it has written it there.
 * Cassandra's other strategies leave 0 for all tables, but for Leveled. Tables that are there
 * before the first look and have no level get one by their size, so that the first merge does not
 * take all. The number of flushes so far is counted from the first look on; before it, a table
 * counts as as many flushes of mean size as it has bytes.
 *
 * <p>One thread at a time uses it.
 */
final class Tables {
    /** Leveled compaction refuses tables of higher levels, and users may go back to it. */
    static final int LEVEL_MAX = 8;

    /** The size of a level over the size of the level above, for tables that have no level. */
    private static final double RATIO = 4;

    /** By level, then newest first. Data that comes late stays in its level. */
    static final Comparator<Table> ORDER = Comparator.comparingInt(Table::level)
            .thenComparing(Comparator.comparingLong(Table::timestamp).reversed())
            .thenComparing(
                    table -> table.reader.descriptor.id,
                    SSTableIdFactory.COMPARATOR.reversed());

    /** A table at the moment of a look. */
    record Table(SSTableReader reader, int level, long bytes, long timestamp, boolean isBusy) {}

    private final ColumnFamilyStore store;
    private final Set<SSTableReader> known = new HashSet<>();
    private final Runs runs = new Runs();

    /** Levels by size. Null before the first look. */
    private Map<SSTableReader, Integer> inferred;

    private long flushes;
    private long flushedBytes;

    Tables(ColumnFamilyStore store) {
        this.store = store;
    }

    /** For an empty set of tables that had these flushes, under a policy with these notes. */
    Tables(ColumnFamilyStore store, long flushes, long flushedBytes, Map<String, String> notes) {
        this(store);
        this.flushes = flushes;
        this.flushedBytes = flushedBytes;
        notes.forEach(runs.notes()::put);
    }

    /** Adds a table that no merge of this strategy has made. Does nothing if it is known. */
    void add(SSTableReader table) {
        if (known.add(table) && inferred != null) {
            flushes++;
            flushedBytes += table.onDiskLength();
        }
    }

    /** Adds the output of a merge, or a table whose metadata changed. */
    void addMerged(Iterable<SSTableReader> tables) {
        tables.forEach(known::add);
    }

    /** Takes out a table. Does nothing if it is not there. */
    void remove(SSTableReader table) {
        known.remove(table);
        if (inferred != null) {
            inferred.remove(table);
        }
    }

    Set<SSTableReader> known() {
        return Set.copyOf(known);
    }

    /**
     * Returns all tables in the order in which the policy sees them. A table that could not be read
     * is left out, so that its neighbours are neighbours of each other.
     */
    List<Table> look() {
        View view = store.getTracker().getView();
        Set<SSTableReader> free = new HashSet<>();
        view.getUncompacting(view.liveSSTables()).forEach(free::add);
        List<SSTableReader> live = new ArrayList<>();
        for (SSTableReader reader : view.liveSSTables()) {
            // Of a table that is being merged there may be several objects. A transaction takes
            // the one of the view.
            if (known.contains(reader) && !reader.isMarkedSuspect()) {
                live.add(reader);
            }
        }
        if (inferred == null) {
            infer(live);
        }
        List<Table> tables = new ArrayList<>(live.size());
        for (SSTableReader reader : live) {
            tables.add(new Table(reader, level(reader), reader.onDiskLength(),
                    reader.getMaxTimestamp(), !free.contains(reader)));
        }
        tables.sort(ORDER);
        return tables;
    }

    private int level(SSTableReader reader) {
        int level = inferred.getOrDefault(reader, reader.getSSTableLevel());
        return Math.max(0, Math.min(level, LEVEL_MAX));
    }

    private void infer(List<SSTableReader> live) {
        inferred = new HashMap<>();
        double mean = Math.max(1, meanFlush(live));
        for (SSTableReader reader : live) {
            double count = Math.max(1, reader.onDiskLength() / mean);
            if (reader.getSSTableLevel() == 0) {
                inferred.put(reader, levelOf(count));
            }
            flushes += Math.round(count);
            flushedBytes += reader.onDiskLength();
        }
    }

    /** Returns the level that a table of {@code count} flushes is in, if nothing says it. */
    static int levelOf(double count) {
        int level = (int) (Math.log(count) / Math.log(RATIO) + 0.01);
        return Math.min(level, LEVEL_MAX);
    }

    /** Returns the mean bytes of a flush; the median of level 0 if nothing was flushed. */
    private double meanFlush(List<SSTableReader> live) {
        double mean = store.metric.flushSizeOnDisk.get();
        if (mean >= 1) {
            return mean;
        }
        long[] sizes = live.stream().filter(reader -> reader.getSSTableLevel() == 0)
                .mapToLong(SSTableReader::onDiskLength).sorted().toArray();
        return sizes.length == 0 ? 0 : sizes[(sizes.length - 1) / 2];
    }

    /** Returns these tables as a policy sees them. The object is filled anew by the next call. */
    Runs runs(List<Table> tables) {
        runs.clear(flushes == 0 ? 0 : flushedBytes / flushes, flushes, flushedBytes);
        for (Table table : tables) {
            runs.add(table.bytes(), table.level(), table.isBusy());
        }
        return runs;
    }

    /** Remembers what the policy asks to remember, for as long as this object lives. */
    void note(Pick pick) {
        runs.notes().apply(pick);
    }
}
