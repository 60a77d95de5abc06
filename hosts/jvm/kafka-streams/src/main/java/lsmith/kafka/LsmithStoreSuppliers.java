package lsmith.kafka;

import java.util.Map;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Moves every store of an application to lsmith, by one line of its configuration:
 * {@code dsl.store.suppliers.class=lsmith.kafka.LsmithStoreSuppliers}. {@link LsmithConfig} has the
 * settings.
 */
public final class LsmithStoreSuppliers implements DslStoreSuppliers {
    /** Called by Kafka. */
    public LsmithStoreSuppliers() {}

    /** Checks the settings, so that a mistake shows when the topology is built. */
    @Override
    public void configure(Map<String, ?> configs) {
        LsmithConfig.of(configs);
    }

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return LsmithStores.keyValueStore(params.name(), params.isTimestamped());
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return LsmithStores.windowStore(params.name(), params.retentionPeriod(),
                params.windowSize(), params.retainDuplicates(), params.isTimestamped());
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return LsmithStores.sessionStore(params.name(), params.retentionPeriod());
    }
}
