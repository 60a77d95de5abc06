package lsmith.cassandra.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.policies.ConstantReconnectionPolicy;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import lsmith.cassandra.cluster.ClusterNode.Ports;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Promised: a node that is killed comes back with its rows, its policy and the levels of tables. */
class RestartTest {
    private static final int CHANGES = 400;
    private static final int FLUSHES_MAX = 20;

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    Path folder;

    /** A table in a view: its bytes and its level. */
    private record Seen(long bytes, int level) {}

    /** What the strategy said when it began a merge: the tables, newest first. */
    private record Decision(int from, int end, int level, String policy, List<Seen> view) {
        private static final Pattern PICK = Pattern.compile(
                "Pick\\[from=(\\d+), end=(\\d+), level=(\\d+),.* of lsmith.rows: (.*) of view .*");
        private static final Pattern TABLE = Pattern.compile("\\[t\\d+:\\.\\. (\\d+)B\\]");

        /** Reads the decisions in a log. A view has one line for each level. */
        static List<Decision> all(List<String> log) {
            List<Decision> decisions = new ArrayList<>();
            for (String line : log) {
                Matcher pick = PICK.matcher(line);
                if (pick.find()) {
                    decisions.add(new Decision(Integer.parseInt(pick.group(1)),
                            Integer.parseInt(pick.group(2)), Integer.parseInt(pick.group(3)),
                            pick.group(4), new ArrayList<>()));
                } else if (line.matches("L\\d+ r.*")) {
                    int level = Integer.parseInt(line.substring(1, line.indexOf(' ')));
                    Matcher table = TABLE.matcher(line);
                    while (table.find()) {
                        decisions.get(decisions.size() - 1).view.add(
                                new Seen(Long.parseLong(table.group(1)), level));
                    }
                }
            }
            return decisions;
        }

        /** Returns the levels after this merge, newest first. */
        List<Integer> levelsAfter() {
            List<Integer> levels = new ArrayList<>(view.stream().map(Seen::level).toList());
            levels.subList(from, end).clear();
            levels.add(from, level);
            return levels;
        }
    }

    private static Ports freePorts() throws IOException {
        try (ServerSocket nodes = new ServerSocket(0); ServerSocket clients = new ServerSocket(0);
                ServerSocket management = new ServerSocket(0)) {
            return new Ports(nodes.getLocalPort(), clients.getLocalPort(),
                    management.getLocalPort());
        }
    }

    private static String compaction(String policy) {
        return "{'class': 'lsmith.cassandra.LsmithCompactionStrategy', 'policy': '" + policy + "'}";
    }

    /** Changes and flushes until the strategy has begun one more merge, and returns it. */
    private static Decision nextMerge(ClusterNode node, ClusterLoad load) throws Exception {
        int before = Decision.all(node.log()).size();
        for (int flush = 0; flush < FLUSHES_MAX; flush++) {
            load.change(CHANGES);
            node.flush();
            List<Decision> decisions = Decision.all(node.log());
            if (decisions.size() > before) {
                return decisions.get(before);
            }
        }
        throw new IllegalStateException("no merge in " + FLUSHES_MAX + " flushes");
    }

    @Test
    void killedNodeComesBackWithRowsPolicyAndLevels() throws Exception {
        Ports ports = freePorts();
        ClusterNode node = new ClusterNode("127.0.0.1", ports, folder,
                // It is alone: there is no gossip to wait for. And it lives for seconds.
                "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-XX:TieredStopAtLevel=1");
        try {
            begin(node);
            try (Cluster cluster = Cluster.builder().withoutJMXReporting()
                    .withPort(ports.clients()).addContactPoint(node.address())
                    .withReconnectionPolicy(new ConstantReconnectionPolicy(300)).build()) {
                Session session = cluster.connect();
                session.execute("CREATE KEYSPACE lsmith WITH replication ="
                        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE lsmith.rows (p int, c int, v blob, PRIMARY KEY"
                        + " (p, c)) WITH compaction = " + compaction("tiered(ratio=2)"));
                try (ClusterLoad load = new ClusterLoad(session)) {
                    run(node, session, load);
                }
            }
        } finally {
            node.killIfAlive();
        }
    }

    /** Starts the node on an empty folder. A failure is the machine's matter, as for others. */
    private static void begin(ClusterNode node) throws Exception {
        try {
            node.start();
        } catch (IOException error) {
            Files.writeString(Path.of(System.getProperty("node.failure")), error.toString());
            throw error;
        }
    }

    private static void run(ClusterNode node, Session session, ClusterLoad load)
            throws Exception {
        // Its size alone would put a table of 8 flushes into level 1.
        while (!nextMerge(node, load).levelsAfter().contains(3)) {
        }
        String altered = compaction("tiered(ratio=3)");
        session.execute("ALTER TABLE lsmith.rows WITH compaction = " + altered);
        Decision last = nextMerge(node, load);
        assertTrue(last.policy.startsWith("tiered(ratio=3"), last.policy);
        assertTrue(last.levelsAfter().contains(3), last.toString());
        node.tryCompaction(compaction("constant(k=9)").replace('\'', '"'));
        assertTrue(node.compaction().contains("constant(k=9)"), node.compaction());

        Exception[] failed = new Exception[1];
        Thread killing = new Thread(() -> {
            try {
                Thread.sleep(100);
                node.kill();
                node.start();
            } catch (Exception error) {
                failed[0] = error;
            }
        });
        killing.start();
        for (boolean isOver = false; !isOver; isOver = !killing.isAlive()) {
            load.change(CHANGES);
        }
        if (failed[0] != null) {
            throw failed[0];
        }
        assertTrue(load.retries() > 0, "no change was under way when the node was killed");
        assertTrue(load.check(ConsistencyLevel.ONE) > 0);

        // The policy of the schema holds. What this node alone has tried is forgotten.
        assertFalse(node.compaction().contains("constant"), node.compaction());
        assertTrue(node.compaction().contains("tiered(ratio=3)"), node.compaction());
        int bytesBefore = (int) node.metric("CompactionBytesWritten");
        Decision next = nextMerge(node, load);
        assertTrue(next.policy.startsWith("tiered(ratio=3"), next.policy);
        // Tables of before are the oldest ones, and in the levels of before.
        List<Integer> before = last.levelsAfter();
        List<Integer> now = next.view.stream().map(Seen::level).toList();
        assertEquals(before, now.subList(now.size() - before.size(), now.size()));
        assertTrue(node.metric("CompactionBytesWritten") > bytesBefore);
        load.check(ConsistencyLevel.ONE);
    }
}
