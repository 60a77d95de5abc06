package org.apache.kafka.streams.state.internals;

import java.time.Duration;
import lsmith.kafka.LsmithStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's own suite of window stores. */
class LsmithWindowStoreSuiteTest extends AbstractWindowBytesStoreTest {
    /** Tests open a second store beside the first. Each has a folder of its own. */
    private int stores;

    @Override
    <K, V> WindowStore<K, V> buildWindowStore(long retentionPeriod, long windowSize,
            boolean retainDuplicates, Serde<K> keySerde, Serde<V> valueSerde) {
        return Stores.windowStoreBuilder(
                LsmithStores.windowStore("window-store-" + ++stores, Duration.ofMillis(retentionPeriod),
                        Duration.ofMillis(windowSize), retainDuplicates, false),
                keySerde, valueSerde).build();
    }
}
