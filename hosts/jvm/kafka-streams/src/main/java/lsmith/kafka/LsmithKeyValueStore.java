package lsmith.kafka;

import java.util.List;
import java.util.Objects;
import lsmith.Batch;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A key-value store. Keys are stored as they are. */
class LsmithKeyValueStore extends LsmithStateStore implements KeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(LsmithKeyValueStore.class);

    LsmithKeyValueStore(String name) {
        super(name);
    }

    /** A store whose values begin with a timestamp; Kafka converts old changelogs for it. */
    static final class Timestamped extends LsmithKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    @Override
    void restore(byte[] key, byte[] value, Batch batch) {
        if (value == null) {
            batch.delete(key);
        } else {
            batch.put(key, value);
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        putOrDelete(key.get(), value);
        notePosition();
    }

    @Override
    public synchronized byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        Batch batch = new Batch();
        for (KeyValue<Bytes, byte[]> entry : entries) {
            Objects.requireNonNull(entry.key, "key cannot be null");
            restore(entry.key.get(), entry.value, batch);
        }
        write(batch);
        notePosition();
    }

    @Override
    public synchronized byte[] delete(Bytes key) {
        byte[] before = get(key);
        put(key, null);
        return before;
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        return find(key.get());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, true);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean backward) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            LOG.warn(Segments.WRONG_ORDER);
            return between(List.of(), backward);
        }
        byte[] end = to == null ? null : KeyBounds.after(to.get());
        return between(List.of(new KeyBounds(from == null ? null : from.get(), end)), backward);
    }

    private KeyValueIterator<Bytes, byte[]> between(List<KeyBounds> ranges, boolean backward) {
        return iterate(ranges, backward, key -> true, Bytes::wrap).openNext();
    }

    @Override
    public <S extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix,
            S serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] from = serializer.serialize(null, prefix);
        return between(List.of(new KeyBounds(from, KeyBounds.behind(from))), false);
    }

    @Override
    public long approximateNumEntries() {
        return store().approximateLen();
    }
}
