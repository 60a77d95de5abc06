package lsmith.cassandra.cluster;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.management.Attribute;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import lsmith.cassandra.NodeConfig;

/** A node in a process of its own. The seed of its cluster is 127.0.0.1. */
final class ClusterNode {
    private static final int START_SECONDS = 300;
    private static final int LINES_OF_LOG = 30;

    /** Where it listens: for nodes, for clients, and for its management. */
    record Ports(int nodes, int clients, int management) {}

    private final String address;
    private final Ports ports;
    private final Path folder;
    private final List<String> flags;
    private Process process;

    /** Takes flags of its own for the process. */
    ClusterNode(String address, Ports ports, Path folder, String... flags) {
        this.address = address;
        this.ports = ports;
        this.folder = folder;
        this.flags = List.of(flags);
    }

    String address() {
        return address;
    }

    /** Returns the lines of its log, of all its starts. Decisions of the strategy are among them. */
    List<String> log() throws IOException {
        return Files.readAllLines(folder.resolve("node.log"));
    }

    /** Starts the process, and waits until it takes clients. */
    void start() throws IOException, InterruptedException {
        if (answers()) {
            throw new IOException("expected nothing at " + address + ":" + ports.clients()
                    + ", found a process that takes clients: end it first");
        }
        Files.createDirectories(folder);
        Path yaml = folder.resolve("cassandra.yaml");
        List<String> lines =
                new ArrayList<>(NodeConfig.yaml(folder, address, "127.0.0.1", ports.nodes()));
        lines.add("auto_bootstrap: false");
        lines.add("native_transport_port: " + ports.clients());
        // What a node has said yes to is in its log, also if the process is killed.
        lines.add("commitlog_sync: group");
        lines.add("commitlog_sync_group_window: 5ms");
        lines.add("concurrent_compactors: 2");
        lines.add("data_file_directories: [" + folder.resolve("data") + "]");
        Files.write(yaml, lines);
        List<String> command = new ArrayList<>(List.of("java",
                "@" + System.getProperty("node.options"), "-Xmx900m",
                "-Dcassandra.config=" + yaml.toUri(), "-Dcassandra.storagedir=" + folder,
                "-Dcassandra.jmx.local.port=" + ports.management(),
                // What a process wrote to files outlives its death. Only power loss needs syncs.
                "-Dcassandra.skip_sync=true",
                // Otherwise it closes its output once it runs.
                "-Dcassandra-foreground=yes", "-Dcassandra.ring_delay_ms=3000",
                "-Dlsmith.log=WARN", "-Dlsmith.decisions=DEBUG",
                "-cp", System.getProperty("java.class.path")));
        command.addAll(flags);
        command.add("org.apache.cassandra.service.CassandraDaemon");
        process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(
                        folder.resolve("node.log").toFile()))
                .start();
        for (int half = 0; half < 2 * START_SECONDS && process.isAlive(); half++) {
            Thread.sleep(500);
            if (answers()) {
                return;
            }
        }
        List<String> log = log();
        throw new IOException("the node in " + folder + " does not start: "
                + String.join("\n", log.subList(Math.max(0, log.size() - LINES_OF_LOG),
                        log.size())));
    }

    private boolean answers() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(address, ports.clients()), 500);
            return true;
        } catch (IOException error) {
            return false;
        }
    }

    /** Ends the process at once, as {@code kill -9} does. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    void killIfAlive() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    /** What is done over a connection to the management of a node. */
    interface Managed<T> {
        T with(MBeanServerConnection connection, ObjectName table) throws Exception;
    }

    private <T> T managed(Managed<T> managed) throws Exception {
        JMXServiceURL url = new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:"
                + ports.management() + "/jmxrmi");
        try (JMXConnector connector = JMXConnectorFactory.connect(url)) {
            return managed.with(connector.getMBeanServerConnection(), new ObjectName(
                    "org.apache.cassandra.db:type=Tables,keyspace=lsmith,table=rows"));
        }
    }

    /** Writes the memtable of the table, and waits until no merge is due or under way. */
    void flush() throws Exception {
        managed((connection, table) -> connection.invoke(
                new ObjectName("org.apache.cassandra.db:type=StorageService"), "forceKeyspaceFlush",
                new Object[] {"lsmith", new String[] {"rows"}},
                new String[] {String.class.getName(), String[].class.getName()}));
        for (int quiet = 0; quiet < 3;) {
            Thread.sleep(20);
            quiet = metric("PendingCompactions") == 0 && !isCompacting() ? quiet + 1 : 0;
        }
    }

    private boolean isCompacting() throws Exception {
        return managed((connection, table) -> {
            ObjectName manager = new ObjectName("org.apache.cassandra.db:type=CompactionManager");
            return !((List<?>) connection.getAttribute(manager, "Compactions")).isEmpty();
        });
    }

    /** Returns the compaction of this node, as JSON. */
    String compaction() throws Exception {
        return managed((connection, table) ->
                (String) connection.getAttribute(table, "CompactionParametersJson"));
    }

    /** Replaces the compaction of this node alone. */
    void tryCompaction(String json) throws Exception {
        managed((connection, table) -> {
            connection.setAttribute(table, new Attribute("CompactionParametersJson", json));
            return null;
        });
    }

    /** Returns a value of Cassandra's metrics of the table. */
    long metric(String name) throws Exception {
        return managed((connection, table) -> {
            ObjectName metric = new ObjectName("org.apache.cassandra.metrics:type=Table,"
                    + "keyspace=lsmith,scope=rows,name=" + name);
            boolean isCounter = name.endsWith("Written") || name.endsWith("Flushed");
            Object value = connection.getAttribute(metric, isCounter ? "Count" : "Value");
            return ((Number) value).longValue();
        });
    }
}
