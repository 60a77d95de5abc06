package org.apache.kafka.streams.state.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import lsmith.kafka.LsmithStores;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.internals.MockStreamsMetrics;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.TestUtils;
import org.junit.jupiter.api.Test;

/**
 * Kafka's own suite of session stores, with what it expects of stores that expire by segments and
 * find sessions by time.
 */
class LsmithSessionStoreSuiteTest extends AbstractSessionBytesStoreTest {
    /** Tests open a second store beside the first. Each has a folder of its own. */
    private int stores;

    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retentionPeriod, Serde<K> keySerde,
            Serde<V> valueSerde) {
        return Stores.sessionStoreBuilder(
                LsmithStores.sessionStore("session-store-" + ++stores, Duration.ofMillis(retentionPeriod)),
                keySerde, valueSerde).build();
    }

    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }

    /** Kafka's test restores into a store that was closed and not opened again. */
    @Override
    @Test
    public void shouldRestore() {
        MockRecordCollector collector = new MockRecordCollector();
        SessionStore<String, Long> before = open(collector);
        Windowed<String> session = new Windowed<>("a", new SessionWindow(10, 100));
        Windowed<String> removed = new Windowed<>("b", new SessionWindow(10, 100));
        before.put(session, 1L);
        before.put(removed, 2L);
        before.remove(removed);
        before.put(session, 3L);
        before.close();
        assertThrows(InvalidStateStoreException.class, () -> before.fetch("a"));
        List<KeyValue<byte[], byte[]>> changelog = new ArrayList<>();
        for (ProducerRecord<Object, Object> record : collector.collected()) {
            changelog.add(KeyValue.pair(((Bytes) record.key()).get(), (byte[]) record.value()));
        }
        assertEquals(4, changelog.size());
        SessionStore<String, Long> after = open(new MockRecordCollector());
        assertFalse(after.fetch("a").hasNext());
        restored.restore(after.name(), changelog);
        try (KeyValueIterator<Windowed<String>, Long> all = after.fetch("a", "z")) {
            assertEquals(KeyValue.pair(session, 3L), all.next());
            assertFalse(all.hasNext());
        }
        after.close();
    }

    private InternalMockProcessorContext<?, ?> restored;

    private SessionStore<String, Long> open(MockRecordCollector collector) {
        restored = new InternalMockProcessorContext<>(TestUtils.tempDirectory(), Serdes.String(),
                Serdes.Long(), collector, new ThreadCache(new LogContext("test"), 0,
                        new MockStreamsMetrics(new Metrics())));
        SessionStore<String, Long> store =
                buildSessionStore(RETENTION_PERIOD, Serdes.String(), Serdes.Long());
        store.init(restored, store);
        return store;
    }
}
