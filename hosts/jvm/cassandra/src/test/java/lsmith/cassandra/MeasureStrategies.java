package lsmith.cassandra;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * Prints what compaction strategies cost on the same writes: updates of rows, a tenth of them
 * deletes, in memtables of about 100 kB.
 *
 * <p>Arguments: the number of flushes, and strategies: names of Cassandra's own, with their options
 * behind a colon, or specs of lsmith.
 */
public final class MeasureStrategies {
    private static final int ROWS_IN_FLUSH = 400;
    private static final int ROWS = 20_000;

    private MeasureStrategies() {}

    /** Runs all strategies, one after the other, on a node in this process. */
    public static void main(String[] args) {
        Node.ensureStarted();
        int flushes = Integer.parseInt(args[0]);
        System.out.println("| strategy | written | mean tables | most | largest merge, kB |");
        System.out.println("|---|---|---|---|---|");
        for (int index = 1; index < args.length; index++) {
            System.out.println(measure(args[index], "measured" + index, flushes));
        }
        System.exit(0);
    }

    private static String compaction(String strategy) {
        String[] parts = strategy.split(":", 2);
        return strategy.contains("Strategy")
                ? "{'class': '" + parts[0] + "'" + (parts.length > 1 ? ", " + parts[1] : "") + "}"
                : Node.compaction(strategy);
    }

    private static String measure(String strategy, String name, int flushes) {
        Node.run("CREATE TABLE " + Node.KEYSPACE + "." + name
                + " (p int, c int, v blob, PRIMARY KEY (p, c)) WITH gc_grace_seconds = 0"
                + " AND compression = {'enabled': false} AND compaction = " + compaction(strategy));
        ColumnFamilyStore table = Keyspace.open(Node.KEYSPACE).getColumnFamilyStore(name);
        Random random = new Random(1);
        long most = 0;
        long sum = 0;
        long largest = 0;
        for (int flush = 0; flush < flushes; flush++) {
            write(table, random);
            Set<SSTableReader> before = new HashSet<>(table.getLiveSSTables());
            long written = table.metric.compactionBytesWritten.getCount();
            Node.flush(table);
            Set<SSTableReader> made = new HashSet<>(table.getLiveSSTables());
            made.removeAll(before);
            if (table.metric.compactionBytesWritten.getCount() > written) {
                largest = Math.max(largest,
                        made.stream().mapToLong(SSTableReader::onDiskLength).max().orElse(0));
            }
            sum += table.getLiveSSTables().size();
            most = Math.max(most, table.getLiveSSTables().size());
        }
        double flushed = table.metric.bytesFlushed.getCount();
        return String.format("| `%s` | %.2f | %.1f | %d | %d |", strategy,
                1 + table.metric.compactionBytesWritten.getCount() / flushed,
                (double) sum / flushes, most, largest / 1000);
    }

    /** All rows are in one partition, so that they are in one data directory. */
    private static void write(ColumnFamilyStore table, Random random) {
        String name = Node.KEYSPACE + "." + table.name;
        for (int row = 0; row < ROWS_IN_FLUSH; row++) {
            int c = random.nextInt(ROWS);
            if (random.nextInt(10) == 0) {
                Node.query("DELETE FROM " + name + " WHERE p = 7 AND c = ?", c);
                continue;
            }
            byte[] value = new byte[150 + random.nextInt(200)];
            random.nextBytes(value);
            Node.query("INSERT INTO " + name + " (p, c, v) VALUES (7, ?, ?)", c,
                    ByteBuffer.wrap(value));
        }
    }
}
