package lsmith.cassandra;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.service.CassandraDaemon;

/** A node in this process, on loopback and without clients. It starts once and ends with it. */
final class Node {
    static final String KEYSPACE = "lsmith";

    private static final long SETTLE_SECONDS = 30;

    private Node() {}

    private static final class Holder {
        static {
            start();
        }

        static void touch() {}
    }

    /** Starts the node unless it runs. */
    static void ensureStarted() {
        Holder.touch();
    }

    private static void start() {
        try {
            Path folder = Path.of(System.getProperty("node.folder"));
            delete(folder);
            Files.createDirectories(folder);
            Path yaml = folder.resolve("cassandra.yaml");
            Files.write(yaml, yaml(folder));
            System.setProperty("cassandra.config", yaml.toUri().toString());
            System.setProperty("cassandra.storagedir", folder.toString());
            // The node ends with the process, and no test reads its files after that.
            System.setProperty("cassandra.skip_sync", "true");
            // Otherwise it closes the output of the process.
            System.setProperty("cassandra-foreground", "yes");
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        activate();
        run("CREATE KEYSPACE " + KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }

    /**
     * If the node does not start, the cause goes to a file: {@code cargo xtask jvm} starts a second
     * process then. Every class of tests would fail, and none would tell the cause.
     */
    private static void activate() {
        try {
            new CassandraDaemon(true).activate();
        } catch (RuntimeException error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            try {
                Files.writeString(Path.of(System.getProperty("node.failure")), trace.toString());
            } catch (IOException other) {
                error.addSuppressed(other);
            }
            throw error;
        }
    }

    /** Merges run one after the other, in two directories. No client can come. */
    private static List<String> yaml(Path folder) throws IOException {
        List<String> yaml = new ArrayList<>(
                NodeConfig.yaml(folder, "127.0.0.1", "127.0.0.1", freePort()));
        yaml.add("start_native_transport: false");
        yaml.add("commitlog_sync: periodic");
        yaml.add("commitlog_sync_period: 10000ms");
        yaml.add("concurrent_compactors: 1");
        yaml.add("data_file_directories: [" + folder.resolve("data1") + ", "
                + folder.resolve("data2") + "]");
        return yaml;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static void delete(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    /** Runs a statement that changes the schema. */
    static void run(String cql) {
        QueryProcessor.process(cql, ConsistencyLevel.ONE);
    }

    static UntypedResultSet query(String cql, Object... values) {
        return QueryProcessor.executeInternal(cql, values);
    }

    /** Makes a table {@code (p int, c int, v blob)} whose tombstones may go at once. */
    static ColumnFamilyStore createTable(String name, String policy) {
        ensureStarted();
        run("CREATE TABLE " + KEYSPACE + "." + name + " (p int, c int, v blob, PRIMARY KEY (p, c))"
                + " WITH gc_grace_seconds = 0 AND compression = {'enabled': false}"
                + " AND compaction = " + compaction(policy));
        return Keyspace.open(KEYSPACE).getColumnFamilyStore(name);
    }

    /** Returns the options of a table in CQL, which are JSON too but for the quotes. */
    static String compaction(String policy) {
        return "{'class': 'lsmith.cassandra.LsmithCompactionStrategy', 'policy': '" + policy + "'}";
    }

    /** Writes the memtable, and waits for merges until none is due. */
    static void flush(ColumnFamilyStore table) {
        table.forceBlockingFlush(ColumnFamilyStore.FlushReason.UNIT_TESTS);
        settle(table);
    }

    /** Waits until no merge is due or under way. Fails if merges never end. */
    static void settle(ColumnFamilyStore table) {
        CompactionManager manager = CompactionManager.instance;
        long end = System.nanoTime() + SETTLE_SECONDS * 1_000_000_000;
        for (int quiet = 0; quiet < 3;) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException("merges of " + table.name + " do not end");
            }
            manager.submitBackground(table);
            boolean isBusy = manager.getPendingTasks() > 0
                    || !table.getTracker().getCompacting().isEmpty();
            quiet = isBusy ? 0 : quiet + 1;
            try {
                Thread.sleep(isBusy ? 5 : 2);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
