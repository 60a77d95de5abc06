package lsmith.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A topology of joins, windows and counts. Promised: it says the same on lsmith as on Kafka's own
 * stores in memory, and one line of configuration moves all of its stores. (The driver commits after
 * each record, and Kafka then syncs a file for each store.)
 */
class TopologyTest {
    private static final Duration SECOND = Duration.ofSeconds(1);

    private static Topology topology(Properties configs) {
        StreamsBuilder builder = new StreamsBuilder(
                new org.apache.kafka.streams.TopologyConfig(new StreamsConfig(configs)));
        KStream<String, String> left = builder.stream("left");
        KStream<String, String> right = builder.stream("right");
        KTable<String, String> table = right.toTable();
        left.groupByKey().count().toStream().mapValues(String::valueOf).to("counts");
        left.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(SECOND)).count().toStream()
                .map((key, count) -> KeyValue.pair(key.toString(), count.toString()))
                .to("windows");
        left.groupByKey().windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(SECOND)).count()
                .toStream().map((key, count) -> KeyValue.pair(key.toString(), count.toString()))
                .to("sliding");
        left.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(SECOND))
                .emitStrategy(EmitStrategy.onWindowClose()).count().toStream()
                .map((key, count) -> KeyValue.pair(key.toString(), count.toString())).to("closed");
        left.groupByKey().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(SECOND)).count()
                .toStream().map((key, count) -> KeyValue.pair(key.toString(), "" + count))
                .to("sessions");
        left.join(right, (a, b) -> a + b, JoinWindows.ofTimeDifferenceWithNoGrace(SECOND))
                .to("joined");
        left.outerJoin(right, (a, b) -> a + b, JoinWindows.ofTimeDifferenceWithNoGrace(SECOND))
                .to("outer");
        left.leftJoin(table, (a, b) -> a + b).to("enriched");
        table.join(left.toTable(), (a, b) -> a + b).toStream().to("tables");
        return builder.build(configs);
    }

    private static final List<String> OUTPUTS = List.of("counts", "windows", "sliding", "closed",
            "sessions", "joined", "outer", "enriched", "tables");

    private static Properties configs(Path state, Class<?> suppliers) {
        Properties configs = new Properties();
        configs.put(StreamsConfig.APPLICATION_ID_CONFIG, "test-" + suppliers.getSimpleName());
        configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        configs.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        configs.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        // The driver commits after each record.
        configs.put(LsmithConfig.SYNC, "false");
        configs.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        return configs;
    }

    /** Returns what the topology says, by topic. Looks at the state directory before it is over. */
    private static Map<String, List<String>> run(Path state, Class<?> suppliers, long seed,
            List<String> folders) throws Exception {
        Files.createDirectories(state);
        Properties configs = configs(state, suppliers);
        Map<String, List<String>> said = new HashMap<>();
        Instant start = Instant.ofEpochMilli(1_000_000);
        try (TopologyTestDriver driver =
                new TopologyTestDriver(topology(configs), configs, start)) {
            List<TestInputTopic<String, String>> inputs = new ArrayList<>();
            for (String name : List.of("left", "right")) {
                inputs.add(driver.createInputTopic(name, new StringSerializer(),
                        new StringSerializer()));
            }
            Random random = new Random(seed);
            long now = start.toEpochMilli();
            for (int i = 0; i < 120; i++) {
                now += random.nextInt(50) == 0 ? 100_000 : random.nextInt(200);
                long time = now - (random.nextInt(10) == 0 ? random.nextInt(3000) : 0);
                String key = "k".repeat(1 + random.nextInt(3)) + random.nextInt(8);
                inputs.get(random.nextInt(2)).pipeInput(key, "v" + i, time);
            }
            for (String name : OUTPUTS) {
                List<String> lines = new ArrayList<>();
                driver.createOutputTopic(name, new StringDeserializer(), new StringDeserializer())
                        .readRecordsToList()
                        .forEach(record -> lines.add(record.timestamp() + " " + record.key() + "="
                                + record.value()));
                // Stores may answer in another order of keys.
                lines.sort(null);
                said.put(name, lines);
            }
            try (Stream<Path> files = Files.walk(state)) {
                files.filter(Files::isDirectory).map(file -> file.getFileName().toString())
                        .forEach(folders::add);
            }
        }
        return new TreeMap<>(said);
    }

    @Test
    void topologySaysTheSameOnBothStores(@TempDir Path directory) throws Exception {
        for (long seed = 1; seed <= 1; seed++) {
            List<String> folders = new ArrayList<>();
            Map<String, List<String>> ours = run(directory.resolve("ours" + seed),
                    LsmithStoreSuppliers.class, seed, folders);
            assertTrue(folders.contains("lsmith"), folders.toString());
            assertTrue(!folders.contains("rocksdb"), folders.toString());
            long stores = folders.stream()
                    .filter(name -> name.toLowerCase(java.util.Locale.ROOT).contains("store"))
                    .count();
            assertTrue(stores >= 12, folders.toString());
            Map<String, List<String>> theirs = run(directory.resolve("theirs" + seed),
                    BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class, seed,
                    new ArrayList<>());
            for (String name : OUTPUTS) {
                assertTrue(theirs.get(name).size() > 2, name);
                assertEquals(theirs.get(name), ours.get(name), name);
            }
        }
    }
}
