package lsmith.kafka.broker;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * An instance of an application that counts records by key, all in all and by window, exactly once.
 * It says when it runs, and ends when its input does.
 *
 * <pre>CountApp SERVERS STATE_DIR SUPPLIERS_CLASS</pre>
 */
final class CountApp {
    static final String ID = "counts";

    private CountApp() {}

    public static void main(String[] args) throws Exception {
        Properties configs = new Properties();
        configs.put(StreamsConfig.APPLICATION_ID_CONFIG, ID);
        configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        configs.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(args[1]).toString());
        configs.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, args[2]);
        configs.put("lsmith.memory.bytes", "67108864");
        configs.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        configs.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, 1);
        configs.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        configs.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        configs.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        configs.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        configs.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10_000);
        StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(configs)));
        KGroupedStream<String, String> grouped =
                builder.<String, String>stream("input").groupByKey();
        grouped.count().toStream().mapValues(String::valueOf).to("counts");
        grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofDays(1))).count().toStream()
                .map((key, count) -> org.apache.kafka.streams.KeyValue.pair(
                        key.key(), String.valueOf(count))).to("windows");
        KafkaStreams streams = new KafkaStreams(builder.build(configs), configs);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        while (System.in.read() >= 0) {
            // The parent keeps the input open as long as the instance shall live.
        }
        streams.close(Duration.ofSeconds(20));
    }
}
