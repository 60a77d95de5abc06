package org.apache.kafka.streams.state.internals;

import lsmith.kafka.LsmithStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's own suite of key-value stores. It is in Kafka's package because parts of it are. */
class LsmithKeyValueStoreSuiteTest extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        KeyValueStore<K, V> store = Stores.keyValueStoreBuilder(
                LsmithStores.keyValueStore("my-store", false),
                (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde()).build();
        store.init(context, store);
        return store;
    }
}
