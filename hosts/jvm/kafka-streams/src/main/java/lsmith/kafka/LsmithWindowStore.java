package lsmith.kafka;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import lsmith.Batch;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A window store: see {@link Segments} for its keys. */
class LsmithWindowStore extends LsmithStateStore implements WindowStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(LsmithWindowStore.class);

    /** Bytes behind a key: the start of the window, and a sequence number. */
    private static final int TAIL_BYTES = 12;

    private final Segments segments;
    private final long windowMs;
    private final boolean retainDuplicates;
    /** The number of the last value; only stores that retain duplicates count. */
    private int sequence;

    LsmithWindowStore(String name, Segments segments, long windowMs, boolean retainDuplicates) {
        super(name);
        this.segments = segments;
        this.windowMs = windowMs;
        this.retainDuplicates = retainDuplicates;
    }

    /** A store whose values begin with a timestamp; Kafka converts old changelogs for it. */
    static final class Timestamped extends LsmithWindowStore implements TimestampedBytesStore {
        Timestamped(String name, Segments segments, long windowMs, boolean retainDuplicates) {
            super(name, segments, windowMs, retainDuplicates);
        }
    }

    @Override
    void opened() {
        segments.open(store(), context());
    }

    /** The changelog has keys without their segments. */
    @Override
    void restore(byte[] key, byte[] value, Batch batch) {
        long start = Segments.timeAt(key, TAIL_BYTES);
        if (!segments.take(start, store())) {
            return;
        }
        if (value == null) {
            batch.delete(segments.stored(start, key));
        } else {
            batch.put(segments.stored(start, key), value);
        }
    }

    private static byte[] withTail(Bytes key, long start, int sequence) {
        ByteBuffer all = ByteBuffer.allocate(key.get().length + TAIL_BYTES);
        return all.put(key.get()).putLong(start).putInt(sequence).array();
    }

    @Override
    public synchronized void put(Bytes key, byte[] value, long start) {
        Objects.requireNonNull(key, "key cannot be null");
        // A join deletes nothing: there is no telling which of several values is meant.
        if (value == null && retainDuplicates) {
            return;
        }
        if (retainDuplicates) {
            sequence = sequence + 1 & 0x7fffffff;
        }
        boolean[] taken = {false};
        guarded(() -> taken[0] = segments.take(start, store()));
        if (!taken[0]) {
            segments.noteDropped();
            return;
        }
        putOrDelete(segments.stored(start, withTail(key, start, sequence)), value);
        notePosition();
    }

    @Override
    public byte[] fetch(Bytes key, long start) {
        Objects.requireNonNull(key, "key cannot be null");
        if (start < segments.unexpired(start)) {
            return null;
        }
        return find(segments.stored(start, withTail(key, start, sequence)));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return new EntryIterator.OfKey(ofKey(key, from, to, false));
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return new EntryIterator.OfKey(ofKey(key, from, to, true));
    }

    private EntryIterator<Long> ofKey(Bytes key, long from, long to, boolean backward) {
        Objects.requireNonNull(key, "key cannot be null");
        return between(key, key, from, to, backward, stored -> Segments.timeAt(stored, TAIL_BYTES));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long from,
            long to) {
        return between(keyFrom, keyTo, from, to, false, this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo,
            long from, long to) {
        return between(keyFrom, keyTo, from, to, true, this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return fetchAll(0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return backwardFetchAll(0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return between(null, null, from, to, false, this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return between(null, null, from, to, true, this::windowed);
    }

    private <K> EntryIterator<K> between(Bytes keyFrom, Bytes keyTo, long from, long to,
            boolean backward, Function<byte[], K> keyOf) {
        long least = segments.unexpired(from);
        List<KeyBounds> ranges =
                segments.ranges(keyFrom, keyTo, least, to, TAIL_BYTES, backward);
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            LOG.warn(Segments.WRONG_ORDER);
            ranges = List.of();
        }
        return iterate(ranges, backward, stored -> {
            long start = Segments.timeAt(stored, TAIL_BYTES);
            return start >= least && start <= to
                    && Segments.isBetween(stored, keyFrom, keyTo, TAIL_BYTES);
        }, keyOf);
    }

    private Windowed<Bytes> windowed(byte[] stored) {
        long start = Segments.timeAt(stored, TAIL_BYTES);
        long end = start + windowMs < 0 ? Long.MAX_VALUE : start + windowMs;
        return new Windowed<>(Segments.keyOf(stored, TAIL_BYTES), new TimeWindow(start, end));
    }
}
