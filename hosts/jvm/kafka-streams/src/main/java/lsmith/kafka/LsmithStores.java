package lsmith.kafka;

import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Suppliers of single stores, for {@code Materialized.as} and for the builders of {@code Stores}.
 * Versioned stores are not among them: see docs/kafka-streams.md.
 */
public final class LsmithStores {
    /** The least span of time that expires at once, as in Kafka's own stores. */
    private static final long SEGMENT_MS_MIN = 60_000;

    private static final String SCOPE = "lsmith";

    private LsmithStores() {}

    /**
     * Returns a supplier of key-value stores.
     *
     * @param timestamped whether values begin with a timestamp, as the DSL wants it
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name, boolean timestamped) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return timestamped
                        ? new LsmithKeyValueStore.Timestamped(name)
                        : new LsmithKeyValueStore(name);
            }

            @Override
            public String metricsScope() {
                return SCOPE;
            }
        };
    }

    /**
     * Returns a supplier of window stores.
     *
     * @param retainDuplicates whether a key may have several values in a window, as joins want it
     * @param timestamped whether values begin with a timestamp, as the DSL wants it
     */
    public static WindowBytesStoreSupplier windowStore(String name, Duration retention,
            Duration windowSize, boolean retainDuplicates, boolean timestamped) {
        long retentionMs = positive(retention, "a retention");
        long windowMs = positive(windowSize, "a window size");
        if (windowMs > retentionMs) {
            throw new IllegalArgumentException("window store " + name + ": expected a retention of"
                    + " at least the window size, " + windowMs + " ms, found " + retentionMs);
        }
        return new WindowBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public WindowStore<Bytes, byte[]> get() {
                Segments segments = new Segments(retentionMs, segmentIntervalMs());
                return timestamped
                        ? new LsmithWindowStore.Timestamped(name, segments, windowMs,
                                retainDuplicates)
                        : new LsmithWindowStore(name, segments, windowMs, retainDuplicates);
            }

            @Override
            public String metricsScope() {
                return SCOPE + "-window";
            }

            @Override
            public long segmentIntervalMs() {
                return Math.max(retentionMs / 2, SEGMENT_MS_MIN);
            }

            @Override
            public long windowSize() {
                return windowMs;
            }

            @Override
            public boolean retainDuplicates() {
                return retainDuplicates;
            }

            @Override
            public long retentionPeriod() {
                return retentionMs;
            }
        };
    }

    /** Returns a supplier of session stores. */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        long retentionMs = positive(retention, "a retention");
        return new SessionBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public SessionStore<Bytes, byte[]> get() {
                return new LsmithSessionStore(name, new Segments(retentionMs, segmentIntervalMs()));
            }

            @Override
            public String metricsScope() {
                return SCOPE + "-session";
            }

            @Override
            public long segmentIntervalMs() {
                return Math.max(retentionMs / 2, SEGMENT_MS_MIN);
            }

            @Override
            public long retentionPeriod() {
                return retentionMs;
            }
        };
    }

    private static long positive(Duration duration, String what) {
        if (duration.isNegative()) {
            throw new IllegalArgumentException(
                    "expected " + what + " of 0 ms or more, found " + duration);
        }
        return duration.toMillis();
    }
}
