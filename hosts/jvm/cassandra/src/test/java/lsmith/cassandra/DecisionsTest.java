package lsmith.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import lsmith.Pick;
import lsmith.Policy;
import lsmith.Runs;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/**
 * A node decides as a simulation of the same sizes does, and writes what the simulation predicts.
 *
 * <p>With the environment variable {@code BLESS}, what the node did is written to {@code
 * hosts/conformance/cassandra.txt}. A test of crates/lab replays it in lsmith's own simulation.
 */
class DecisionsTest {
    private static final List<String> POLICIES = List.of(
            "tiered(ratio=4, eager=never)",
            "bigtable(k=5, eager=never)",
            "auto(runs=6, eager=never)",
            "ucs(w=T3/N, eager=never)");

    private static final int FLUSHES = 40;

    @BeforeAll
    static void start() {
        Node.ensureStarted();
    }

    @Test
    void nodeDecidesAsTheSimulation() throws IOException {
        StringBuilder recording = new StringBuilder();
        for (int index = 0; index < POLICIES.size(); index++) {
            String spec = POLICIES.get(index);
            ColumnFamilyStore table = Node.createTable("decisions" + index, spec);
            List<String> steps = run(table, index);
            long written = table.metric.compactionBytesWritten.getCount();
            List<String> expected = new ArrayList<>();
            long predicted = simulate(spec, steps, expected);
            assertEquals(String.join("\n", expected), String.join("\n", steps), spec);
            double share = (double) predicted / written;
            System.out.printf("%s: %d merges, predicted %d, written %d, %.4f%n", spec,
                    steps.size() - FLUSHES, predicted, written, share);
            assertTrue(share > 0.95 && share < 1.05, spec + ": " + share);
            recording.append("policy ").append(spec).append('\n');
            steps.forEach(step -> recording.append(step).append('\n'));
            recording.append("written ").append(written).append('\n');
        }
        if (System.getenv("BLESS") != null) {
            Files.writeString(Path.of("../../conformance/cassandra.txt"), recording);
        }
    }

    /** Writes rows of one partition, so that all are in one data directory. Returns the steps. */
    private static List<String> run(ColumnFamilyStore table, long seed) {
        Logger logger = (Logger) LoggerFactory.getLogger(LsmithCompactionStrategy.class);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.setLevel(Level.DEBUG);
        logger.setAdditive(false);
        logger.addAppender(log);
        try {
            Random random = new Random(seed);
            List<String> steps = new ArrayList<>();
            for (int flush = 0; flush < FLUSHES; flush++) {
                Set<SSTableReader> before = new HashSet<>(table.getLiveSSTables());
                write(table, flush, random);
                log.list.clear();
                steps.add("flush " + flush(table, before));
                for (ILoggingEvent event : log.list) {
                    if (event.getArgumentArray()[0] instanceof Pick pick) {
                        steps.add(step(pick));
                    }
                }
            }
            return steps;
        } finally {
            logger.detachAppender(log);
            logger.setAdditive(true);
            logger.setLevel(null);
        }
    }

    private static void write(ColumnFamilyStore table, int flush, Random random) {
        int rows = 100 + random.nextInt(150);
        for (int row = 0; row < rows; row++) {
            byte[] value = new byte[900 + random.nextInt(200)];
            random.nextBytes(value);
            Node.query("INSERT INTO " + Node.KEYSPACE + "." + table.name
                    + " (p, c, v) VALUES (7, ?, ?)", flush * 1000 + row, ByteBuffer.wrap(value));
        }
    }

    /** Flushes while merges wait, so that the new table can be measured; then lets them run. */
    private static long flush(ColumnFamilyStore table, Set<SSTableReader> before) {
        table.getCompactionStrategyManager().pause();
        table.forceBlockingFlush(ColumnFamilyStore.FlushReason.UNIT_TESTS);
        Set<SSTableReader> flushed = new HashSet<>(table.getLiveSSTables());
        flushed.removeAll(before);
        assertEquals(1, flushed.size());
        long bytes = flushed.iterator().next().onDiskLength();
        table.getCompactionStrategyManager().resume();
        Node.settle(table);
        return bytes;
    }

    private static String step(Pick pick) {
        return "merge " + pick.from() + ".." + pick.end() + " " + pick.level();
    }

    /** A merge of tables is as large as they are together. Returns the bytes that merges write. */
    private static long simulate(String spec, List<String> steps, List<String> simulated) {
        record Run(long bytes, int level) {}

        List<Run> tree = new ArrayList<>();
        long flushes = 0;
        long flushed = 0;
        long written = 0;
        try (Policy policy = new Policy(spec)) {
            Runs runs = new Runs();
            for (String step : steps) {
                if (!step.startsWith("flush ")) {
                    continue;
                }
                long bytes = Long.parseLong(step.substring(6));
                simulated.add(step);
                tree.add(0, new Run(bytes, 0));
                flushes++;
                flushed += bytes;
                while (true) {
                    runs.clear(flushed / flushes, flushes, flushed);
                    tree.forEach(run -> runs.add(run.bytes(), run.level(), false));
                    Pick pick = policy.pick(runs);
                    if (pick == null) {
                        break;
                    }
                    simulated.add(step(pick));
                    runs.notes().apply(pick);
                    List<Run> inputs = tree.subList(pick.from(), pick.end());
                    long sum = inputs.stream().mapToLong(Run::bytes).sum();
                    inputs.clear();
                    tree.add(pick.from(), new Run(sum, pick.level()));
                    written += sum;
                }
            }
        }
        return written;
    }
}
