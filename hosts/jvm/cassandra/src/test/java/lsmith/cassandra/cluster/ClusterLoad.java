package lsmith.cassandra.cluster;

import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes and deletes rows, and knows what must be there. Each change has a timestamp of its own and
 * is sent until a quorum has it, so that the order in which nodes get changes does not matter.
 */
final class ClusterLoad implements AutoCloseable {
    private static final int PARTITIONS = 500;
    private static final int ROWS = 40;
    private static final int UNDER_WAY_MAX = 64;
    /** Nodes may take five minutes to start on a busy machine. */
    private static final int ATTEMPTS_MAX = 1500;

    private final Session session;
    private final PreparedStatement insert;
    private final PreparedStatement delete;
    private final PreparedStatement deleteRange;
    private final PreparedStatement select;
    private final Random random = new Random(1);
    private final TreeMap<Integer, Integer> rows = new TreeMap<>();
    private final ExecutorService senders = Executors.newFixedThreadPool(UNDER_WAY_MAX);
    private final Semaphore free = new Semaphore(UNDER_WAY_MAX);
    private final AtomicLong retries = new AtomicLong();
    private volatile RuntimeException failed;
    private long timestamp = 1;

    ClusterLoad(Session session) {
        this.session = session;
        insert = session.prepare("INSERT INTO lsmith.rows (p, c, v) VALUES (?, ?, ?)"
                + " USING TIMESTAMP ?");
        delete = session.prepare("DELETE FROM lsmith.rows USING TIMESTAMP ?"
                + " WHERE p = ? AND c = ?");
        deleteRange = session.prepare("DELETE FROM lsmith.rows USING TIMESTAMP ?"
                + " WHERE p = ? AND c >= ? AND c < ?");
        select = session.prepare("SELECT c, v FROM lsmith.rows WHERE p = ?");
    }

    /** Sends {@code count} changes, and waits until a quorum has each of them. */
    void change(int count) throws InterruptedException {
        for (int change = 0; change < count && failed == null; change++) {
            BoundStatement statement = next();
            statement.setConsistencyLevel(ConsistencyLevel.QUORUM).setIdempotent(true);
            free.acquire();
            senders.execute(() -> {
                send(statement);
                free.release();
            });
        }
        free.acquire(UNDER_WAY_MAX);
        free.release(UNDER_WAY_MAX);
        if (failed != null) {
            throw failed;
        }
    }

    long retries() {
        return retries.get();
    }

    private BoundStatement next() {
        int p = random.nextInt(PARTITIONS);
        int c = random.nextInt(ROWS);
        long now = timestamp++;
        int kind = random.nextInt(20);
        if (kind == 0) {
            int end = Math.min(ROWS, c + 1 + random.nextInt(ROWS / 2));
            rows.subMap(p * ROWS + c, p * ROWS + end).clear();
            return deleteRange.bind(now, p, c, end);
        }
        if (kind < 4) {
            rows.remove(p * ROWS + c);
            return delete.bind(now, p, c);
        }
        int seed = random.nextInt();
        rows.put(p * ROWS + c, seed);
        return insert.bind(p, c, value(seed), now);
    }

    private static ByteBuffer value(int seed) {
        Random random = new Random(seed);
        byte[] value = new byte[100 + random.nextInt(400)];
        random.nextBytes(value);
        return ByteBuffer.wrap(value);
    }

    private void send(BoundStatement statement) {
        for (int attempt = 0; ; attempt++) {
            try {
                session.execute(statement);
                return;
            } catch (DriverException error) {
                retries.incrementAndGet();
                if (attempt == ATTEMPTS_MAX) {
                    failed = error;
                    return;
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(200);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /**
     * Reads all rows at a level of consistency.
     *
     * @return the number of rows
     * @throws IllegalStateException if one is wrong, lost or back again
     */
    int check(ConsistencyLevel level) {
        int count = 0;
        for (int p = 0; p < PARTITIONS; p++) {
            Map<Integer, Integer> expected = new TreeMap<>(rows.subMap(p * ROWS, (p + 1) * ROWS));
            for (Row row : read(p, level)) {
                int key = p * ROWS + row.getInt("c");
                Integer seed = expected.remove(key);
                if (seed == null || !value(seed).equals(row.getBytes("v"))) {
                    throw new IllegalStateException("row " + key + " is "
                            + (seed == null ? "back again" : "wrong") + " at " + level);
                }
                count++;
            }
            if (!expected.isEmpty()) {
                throw new IllegalStateException("rows are lost at " + level + ": " + expected);
            }
        }
        return count;
    }

    private Iterable<Row> read(int p, ConsistencyLevel level) {
        for (int attempt = 0; ; attempt++) {
            try {
                return session.execute(select.bind(p).setConsistencyLevel(level)).all();
            } catch (DriverException error) {
                if (attempt == ATTEMPTS_MAX) {
                    throw error;
                }
                pause();
            }
        }
    }

    @Override
    public void close() throws InterruptedException {
        senders.shutdown();
        senders.awaitTermination(1, TimeUnit.MINUTES);
    }
}
