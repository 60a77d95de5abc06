package lsmith.cassandra;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.TreeMap;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.utils.ByteBufferUtil;

/** What a table must hold, beside the table. */
final class Model {
    private static final int PARTITIONS = 40;
    private static final int ROWS = 30;

    private final ColumnFamilyStore table;
    private final String name;
    private final Random random;
    private final TreeMap<Integer, byte[]> rows = new TreeMap<>();

    Model(ColumnFamilyStore table, long seed) {
        this.table = table;
        name = Node.KEYSPACE + "." + table.name;
        random = new Random(seed);
    }

    /** Writes and deletes rows and ranges, {@code count} times, with a flush behind each. */
    void rounds(int count) {
        for (int round = 0; round < count; round++) {
            int changes = 60 + random.nextInt(120);
            for (int change = 0; change < changes; change++) {
                change();
            }
            Node.flush(table);
        }
    }

    private void change() {
        int p = random.nextInt(PARTITIONS);
        int c = random.nextInt(ROWS);
        switch (random.nextInt(12)) {
            case 0, 1 -> {
                Node.query("DELETE FROM " + name + " WHERE p = ? AND c = ?", p, c);
                rows.remove(p * ROWS + c);
            }
            case 2 -> {
                int end = c + random.nextInt(ROWS);
                Node.query("DELETE FROM " + name + " WHERE p = ? AND c >= ? AND c < ?", p, c, end);
                rows.subMap(p * ROWS + c, p * ROWS + Math.min(end, ROWS)).clear();
            }
            case 3 -> {
                if (random.nextInt(4) == 0) {
                    Node.query("DELETE FROM " + name + " WHERE p = ?", p);
                    rows.subMap(p * ROWS, (p + 1) * ROWS).clear();
                }
            }
            default -> {
                byte[] value = new byte[50 + random.nextInt(300)];
                random.nextBytes(value);
                Node.query("INSERT INTO " + name + " (p, c, v) VALUES (?, ?, ?)", p, c,
                        ByteBuffer.wrap(value));
                rows.put(p * ROWS + c, value);
            }
        }
    }

    /** Reads every row. */
    void check() {
        int count = 0;
        for (UntypedResultSet.Row row : Node.query("SELECT p, c, v FROM " + name)) {
            int key = row.getInt("p") * ROWS + row.getInt("c");
            byte[] expected = rows.get(key);
            assertNotNull(expected, () -> "row " + key + " came back");
            assertArrayEquals(expected, ByteBufferUtil.getArray(row.getBytes("v")));
            count++;
        }
        assertEquals(rows.size(), count, "rows of " + name);
    }
}
