package lsmith.kafka.broker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import lsmith.kafka.LsmithStores;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.internals.MockStreamsMetrics;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.internals.ThreadCache;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;

/**
 * Many key-value stores of one process, as an application with many partitions has them: read and
 * put a random key in a random store, and flush a store after 10,000 records, as Kafka does at a
 * checkpoint. Then one more store is restored. Says what that took.
 *
 * <pre>StoreBench lsmith|rocksdb DIRECTORY [STORES [RECORDS]]</pre>
 */
final class StoreBench {
    private static final int KEYS_PER_STORE = 50_000;
    private static final int FLUSH_RECORDS = 10_000;

    private final boolean ours;
    private final InternalMockProcessorContext<?, ?> context;

    private StoreBench(boolean ours, Path directory) {
        this.ours = ours;
        context = new InternalMockProcessorContext<>(directory.toFile(), Serdes.Bytes(),
                Serdes.ByteArray(), new MockRecordCollector(), new ThreadCache(
                        new LogContext(""), 0, new MockStreamsMetrics(new Metrics())));
    }

    private KeyValueStore<Bytes, byte[]> open(String name) {
        KeyValueBytesStoreSupplier supplier = ours
                ? LsmithStores.keyValueStore(name, false)
                : Stores.persistentKeyValueStore(name);
        KeyValueStore<Bytes, byte[]> store = supplier.get();
        store.init(context, store);
        return store;
    }

    private static long number(String file, String name) throws IOException {
        try (var lines = Files.lines(Path.of("/proc/self", file))) {
            return lines.filter(line -> line.startsWith(name)).findFirst().map(line ->
                    Long.parseLong(line.replaceAll("[^0-9]", ""))).orElse(0L);
        }
    }

    private static byte[] key(long number) {
        return ByteBuffer.allocate(16).putLong(number * 0x9e3779b97f4a7c15L).putLong(number).array();
    }

    private static byte[] value(Random random) {
        byte[] value = new byte[100];
        random.nextBytes(value);
        return value;
    }

    private void run(int count, int records) throws IOException {
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            stores.add(open("store-" + i));
        }
        long before = number("status", "RssAnon:");
        long most = 0;
        int[] unflushed = new int[count];
        Random random = new Random(1);
        long start = System.nanoTime();
        for (int i = 0; i < records; i++) {
            int which = random.nextInt(count);
            Bytes key = Bytes.wrap(key(random.nextInt(KEYS_PER_STORE)));
            stores.get(which).get(key);
            stores.get(which).put(key, value(random));
            if (++unflushed[which] == FLUSH_RECORDS) {
                unflushed[which] = 0;
                stores.get(which).flush();
            }
            if (i % 5000 == 0) {
                most = Math.max(most, number("status", "RssAnon:"));
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        stores.forEach(KeyValueStore::close);
        double cpu = ProcessHandle.current().info().totalCpuDuration().get().toMillis() / 1e3;
        System.out.printf("%d stores, %d records: %.1f s, %.1f s of CPU, %d MB to the device,"
                + " memory at most %d MB, %d MB of it before%n", count, records, seconds, cpu,
                number("io", "write_bytes:") / 1_000_000, most / 1000, before / 1000);
    }

    private void restore(int records) {
        List<KeyValue<byte[], byte[]>> batch = new ArrayList<>();
        KeyValueStore<Bytes, byte[]> store = open("restored");
        Random random = new Random(2);
        long nanos = 0;
        for (int i = 1; i <= records; i++) {
            batch.add(KeyValue.pair(key(random.nextInt(records)), value(random)));
            if (i % 1000 == 0) {
                long start = System.nanoTime();
                context.restore("restored", batch);
                nanos += System.nanoTime() - start;
                batch.clear();
            }
        }
        long start = System.nanoTime();
        store.flush();
        nanos += System.nanoTime() - start;
        store.close();
        System.out.printf("restored %d records in %.2f s%n", records, nanos / 1e9);
    }

    public static void main(String[] args) throws IOException {
        StoreBench bench = new StoreBench(args[0].equals("lsmith"), Path.of(args[1]));
        bench.run(args.length > 2 ? Integer.parseInt(args[2]) : 40,
                args.length > 3 ? Integer.parseInt(args[3]) : 2_000_000);
        bench.restore(1_000_000);
    }
}
