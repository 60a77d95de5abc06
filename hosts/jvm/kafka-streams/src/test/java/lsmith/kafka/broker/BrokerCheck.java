package lsmith.kafka.broker;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A broker in KRaft mode on loopback, and two instances of {@link CountApp} with a standby of each
 * task. One instance is killed under load, and later started again. Checked: every key has the
 * right count in the end, and no count ever went back.
 *
 * <pre>BrokerCheck [RECORDS [KEYS [SUPPLIERS_CLASS]]]</pre>
 */
final class BrokerCheck implements AutoCloseable {
    private static final int PARTITIONS = 4;

    private final Path directory;
    private final int keys;
    private final String suppliers;
    private final List<Process> processes = new ArrayList<>();
    private final String servers;

    private BrokerCheck(Path directory, int keys, String suppliers) throws Exception {
        this.keys = keys;
        this.directory = directory;
        this.suppliers = suppliers;
        int port = freePort();
        int controller = freePort();
        servers = "127.0.0.1:" + port;
        Path file = directory.resolve("server.properties");
        Files.writeString(file, String.join("\n", "process.roles=broker,controller", "node.id=1",
                "controller.quorum.voters=1@127.0.0.1:" + controller,
                "listeners=PLAINTEXT://127.0.0.1:" + port + ",CONTROLLER://127.0.0.1:" + controller,
                "advertised.listeners=PLAINTEXT://127.0.0.1:" + port,
                "controller.listener.names=CONTROLLER", "log.dirs=" + directory.resolve("broker"),
                "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
                "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
                "transaction.state.log.num.partitions=4",
                "group.initial.rebalance.delay.ms=0", ""));
        Process format = java("format", "kafka.tools.StorageTool", "format", "-t",
                Uuid.randomUuid().toString(), "-c", file.toString());
        if (format.waitFor() != 0) {
            throw new IOException("cannot format the broker: see " + directory);
        }
        java("broker", "kafka.Kafka", file.toString());
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private Process java(String name, String main, String... args) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx512m",
                "-XX:+UseSerialGC", "-cp", System.getProperty("java.class.path"), main));
        command.addAll(List.of(args));
        File log = directory.resolve(name + ".log").toFile();
        Process process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start();
        processes.add(process);
        return process;
    }

    private Process instance(String name) throws IOException {
        return java(name, CountApp.class.getName(), servers,
                directory.resolve("state-" + name).toString(), suppliers);
    }

    private Map<String, Object> clients() {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", servers);
        configs.put("key.serializer", StringSerializer.class);
        configs.put("value.serializer", StringSerializer.class);
        configs.put("key.deserializer", StringDeserializer.class);
        configs.put("value.deserializer", StringDeserializer.class);
        configs.put("isolation.level", "read_committed");
        configs.put("auto.offset.reset", "earliest");
        configs.put("group.id", "check");
        return configs;
    }

    private long timesRunning(String name) throws IOException {
        try (var lines = Files.lines(directory.resolve(name + ".log"))) {
            return lines.filter(line -> line.contains("state RUNNING")).count();
        }
    }

    private void run(int records) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            List<NewTopic> topics = new ArrayList<>();
            for (String name : List.of("input", "counts", "windows")) {
                topics.add(new NewTopic(name, PARTITIONS, (short) 1));
            }
            admin.createTopics(topics).all().get();
        }
        Process one = instance("one");
        Process two = instance("two");
        Map<String, Long> expected = new HashMap<>();
        Random random = new Random(1);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(clients())) {
            for (int i = 0; i < records; i++) {
                String key = "key-" + random.nextInt(keys);
                expected.merge(key, 1L, Long::sum);
                producer.send(new ProducerRecord<>("input", key, "value"));
                if (i % 1000 == 0) {
                    Thread.sleep(100);
                }
                if (i == records / 2) {
                    two.destroyForcibly().waitFor();
                    System.out.println("killed an instance after " + i + " records");
                }
                if (i == records / 4 * 3) {
                    instance("two");
                    System.out.println("started it again after " + i + " records");
                }
            }
        }
        check("counts", expected, records);
        check("windows", expected, records);
        tellCost(one);
        System.out.println("instances came to run: one " + timesRunning("one") + " times, two "
                + timesRunning("two") + " times");
    }

    /** Tells what an instance took: bytes written to the device, CPU and memory. */
    private static void tellCost(Process instance) throws IOException {
        Path proc = Path.of("/proc", String.valueOf(instance.pid()));
        String cpu = instance.info().totalCpuDuration().map(Duration::toString).orElse("unknown");
        System.out.println("the instance that lived took " + cpu + " of CPU, "
                + line(proc.resolve("io"), "write_bytes:") + ", "
                + line(proc.resolve("status"), "VmHWM:") + ", "
                + line(proc.resolve("status"), "RssAnon:"));
    }

    private static String line(Path file, String name) throws IOException {
        try (var lines = Files.lines(file)) {
            return lines.filter(line -> line.startsWith(name)).findFirst().orElse("").trim()
                    .replaceAll("\\s+", " ");
        }
    }

    /** Checks the counts of every key, and that none goes back. */
    private void check(String topic, Map<String, Long> expected, int records) {
        Map<String, Long> found = new HashMap<>();
        Map<String, Object> configs = clients();
        configs.put("group.id", "check-" + topic);
        long start = System.nanoTime();
        long said = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(configs)) {
            consumer.subscribe(List.of(topic));
            while (!found.equals(expected)) {
                if (System.nanoTime() - start > 240e9) {
                    throw new IllegalStateException(topic + ": expected " + records
                            + " records counted, found "
                            + found.values().stream().mapToLong(Long::longValue).sum());
                }
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    said++;
                    long count = Long.parseLong(record.value());
                    Long before = found.put(record.key(), count);
                    if (before != null && before >= count) {
                        throw new IllegalStateException(topic + ": the count of " + record.key()
                                + " goes from " + before + " to " + count);
                    }
                }
            }
        }
        System.out.println(topic + ": all " + records + " records counted once, for "
                + found.size() + " keys, in " + said + " changes");
    }

    @Override
    public void close() throws Exception {
        for (int i = processes.size() - 1; i >= 0; i--) {
            processes.get(i).destroyForcibly().waitFor();
        }
    }

    public static void main(String[] args) throws Exception {
        int records = args.length > 0 ? Integer.parseInt(args[0]) : 200_000;
        int keys = args.length > 1 ? Integer.parseInt(args[1]) : 2000;
        String suppliers = args.length > 2 ? args[2] : "lsmith.kafka.LsmithStoreSuppliers";
        Path directory = Files.createTempDirectory("lsmith-broker");
        System.out.println("files: " + directory);
        try (BrokerCheck check = new BrokerCheck(directory, keys, suppliers)) {
            check.run(records);
        }
        System.out.println("ok");
    }
}
