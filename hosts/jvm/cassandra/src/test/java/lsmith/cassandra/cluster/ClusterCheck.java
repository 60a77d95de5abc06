package lsmith.cassandra.cluster;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Three nodes on loopback, each with all rows: nodes are killed and policies replaced under load,
 * and every row is checked.
 */
public final class ClusterCheck {
    private static final long START = System.nanoTime();

    private static final int CLIENT_PORT = 19042;

    /** Changes after which the load waits until a quorum has them all. */
    private static final int CHANGES_AT_ONCE = 500;

    private final List<ClusterNode> nodes = new ArrayList<>();
    private final int changes;
    private Session session;
    private ClusterLoad load;

    private ClusterCheck(int changes, Path folder) {
        this.changes = changes;
        for (int number = 1; number <= 3; number++) {
            nodes.add(new ClusterNode("127.0.0." + number,
                    new ClusterNode.Ports(17000, CLIENT_PORT, 17100 + number),
                    folder.resolve("node" + number)));
        }
    }

    /** Arguments: changes in each scene, by default 10000. */
    public static void main(String[] args) throws Exception {
        int changes = args.length > 0 ? Integer.parseInt(args[0]) : 10_000;
        ClusterCheck check = new ClusterCheck(changes, Files.createTempDirectory("lsmith-cluster"));
        Runtime.getRuntime().addShutdownHook(
                new Thread(() -> check.nodes.forEach(ClusterNode::killIfAlive)));
        int status = 1;
        try {
            check.run();
            status = 0;
        } catch (Exception error) {
            error.printStackTrace();
        }
        // Threads of the load may wait for a node for minutes. The hook ends the nodes.
        System.exit(status);
    }

    private static void say(String format, Object... values) {
        long seconds = (System.nanoTime() - START) / 1_000_000_000;
        System.out.printf("%4d s  %s%n", seconds, String.format(format, values));
    }

    private void run() throws Exception {
        for (ClusterNode node : nodes) {
            node.start();
            say("node at %s is up", node.address());
        }
        Cluster.Builder builder = Cluster.builder().withPort(CLIENT_PORT)
                .withoutJMXReporting()
                .withSocketOptions(new SocketOptions().setReadTimeoutMillis(5000));
        nodes.forEach(node -> builder.addContactPoint(node.address()));
        try (Cluster cluster = builder.build()) {
            session = cluster.connect();
            session.execute("CREATE KEYSPACE lsmith WITH replication ="
                    + " {'class': 'SimpleStrategy', 'replication_factor': 3}");
            session.execute("CREATE TABLE lsmith.rows (p int, c int, v blob, PRIMARY KEY (p, c))"
                    + " WITH memtable_flush_period_in_ms = 1500 AND compaction = "
                    + compaction("tiered(ratio=4)"));
            load = new ClusterLoad(session);
            scenes();
            load.close();
        }
    }

    private void scenes() throws Exception {
        scene("load under tiered(ratio=4)", () -> { });
        scene("kill -9 of node 3", () -> nodes.get(2).kill());
        scene("node 3 comes back", () -> nodes.get(2).start());
        scene("ALTER TABLE to bigtable(k=4)", () -> alter(compaction("bigtable(k=4)")));
        scene("kill -9 of node 2, and it comes back", () -> {
            nodes.get(1).kill();
            nodes.get(1).start();
        });
        scene("canary on node 1: constant(k=2)", () ->
                nodes.get(0).tryCompaction(compaction("constant(k=2)").replace('\'', '"')));
        scene("ALTER TABLE to auto(runs=6, eager=never)", () ->
                alter(compaction("auto(runs=6, eager=never)")));
        scene("ALTER TABLE to UnifiedCompactionStrategy", () ->
                alter("{'class': 'UnifiedCompactionStrategy'}"));
        scene("ALTER TABLE to tiered(ratio=4)", () -> alter(compaction("tiered(ratio=4)")));
        say("%d rows are right at ALL", load.check(ConsistencyLevel.ALL));
    }

    private static String compaction(String policy) {
        return "{'class': 'lsmith.cassandra.LsmithCompactionStrategy', 'policy': '" + policy + "'}";
    }

    private void alter(String compaction) {
        session.execute("ALTER TABLE lsmith.rows WITH compaction = " + compaction);
    }

    private interface Action {
        void run() throws Exception;
    }

    /**
     * Does something a second after the first change, and changes rows until that is done and there
     * were enough changes. Then checks all rows.
     */
    private void scene(String name, Action action) throws Exception {
        Exception[] failed = new Exception[1];
        Thread acting = new Thread(() -> {
            try {
                Thread.sleep(1000);
                action.run();
            } catch (Exception error) {
                failed[0] = error;
            }
        });
        acting.start();
        for (int sent = 0; sent < changes || acting.isAlive(); sent += CHANGES_AT_ONCE) {
            load.change(CHANGES_AT_ONCE);
        }
        if (failed[0] != null) {
            throw failed[0];
        }
        int rows = load.check(ConsistencyLevel.QUORUM);
        say("%s: %d rows are right, %d changes were sent again; %s", name, rows, load.retries(),
                tables());
    }

    /** Returns what each node has: tables, and MB that flushes and merges wrote since its start. */
    private String tables() {
        StringBuilder text = new StringBuilder();
        for (ClusterNode node : nodes) {
            text.append(text.isEmpty() ? "" : ", ");
            try {
                text.append(node.metric("LiveSSTableCount")).append(" tables ")
                        .append(node.metric("BytesFlushed") / 1_000_000).append('+')
                        .append(node.metric("CompactionBytesWritten") / 1_000_000).append(" MB");
            } catch (Exception error) {
                text.append("down");
            }
        }
        return text.toString();
    }
}
