package lsmith.kafka;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import lsmith.Batch;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A session store: see {@link Segments} for its keys. */
final class LsmithSessionStore extends LsmithStateStore implements SessionStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(LsmithSessionStore.class);

    /** Bytes behind a key: the end of the session, and its start. */
    private static final int TAIL_BYTES = 16;

    private final Segments segments;

    LsmithSessionStore(String name, Segments segments) {
        super(name);
        this.segments = segments;
    }

    @Override
    void opened() {
        segments.open(store(), context());
    }

    /** The changelog has keys without their segments. */
    @Override
    void restore(byte[] key, byte[] value, Batch batch) {
        long end = Segments.timeAt(key, TAIL_BYTES);
        if (!segments.take(end, store())) {
            return;
        }
        if (value == null) {
            batch.delete(segments.stored(end, key));
        } else {
            batch.put(segments.stored(end, key), value);
        }
    }

    private byte[] stored(Bytes key, long start, long end) {
        ByteBuffer all = ByteBuffer.allocate(key.get().length + TAIL_BYTES);
        return segments.stored(end, all.put(key.get()).putLong(end).putLong(start).array());
    }

    @Override
    public synchronized void put(Windowed<Bytes> session, byte[] aggregate) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        Objects.requireNonNull(session.key(), "key cannot be null");
        boolean[] taken = {false};
        guarded(() -> taken[0] = segments.take(session.window().end(), store()));
        if (!taken[0]) {
            segments.noteDropped();
            return;
        }
        byte[] key = stored(session.key(), session.window().start(), session.window().end());
        putOrDelete(key, aggregate);
        notePosition();
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        Objects.requireNonNull(key, "key cannot be null");
        return end < segments.unexpired(end) ? null : find(stored(key, start, end));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd,
            long latestEnd) {
        return between(null, null, earliestEnd, latestEnd, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd,
            long latestStart) {
        Objects.requireNonNull(key, "key cannot be null");
        return between(key, key, earliestEnd, Long.MAX_VALUE, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes key,
            long earliestEnd, long latestStart) {
        Objects.requireNonNull(key, "key cannot be null");
        return between(key, key, earliestEnd, Long.MAX_VALUE, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes keyFrom, Bytes keyTo,
            long earliestEnd, long latestStart) {
        return between(keyFrom, keyTo, earliestEnd, Long.MAX_VALUE, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes keyFrom,
            Bytes keyTo, long earliestEnd, long latestStart) {
        return between(keyFrom, keyTo, earliestEnd, Long.MAX_VALUE, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return findSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return backwardFindSessions(key, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return findSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return backwardFindSessions(keyFrom, keyTo, 0, Long.MAX_VALUE);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> between(Bytes keyFrom, Bytes keyTo,
            long earliestEnd, long latestEnd, long latestStart, boolean backward) {
        long least = segments.unexpired(earliestEnd);
        List<KeyBounds> ranges =
                segments.ranges(keyFrom, keyTo, least, latestEnd, TAIL_BYTES, backward);
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            LOG.warn(Segments.WRONG_ORDER);
            ranges = List.of();
        }
        return iterate(ranges, backward, stored -> {
            long end = Segments.timeAt(stored, TAIL_BYTES);
            return end >= least && end <= latestEnd
                    && Segments.timeAt(stored, 8) <= latestStart
                    && Segments.isBetween(stored, keyFrom, keyTo, TAIL_BYTES);
        }, LsmithSessionStore::windowed);
    }

    private static Windowed<Bytes> windowed(byte[] stored) {
        SessionWindow window = new SessionWindow(Segments.timeAt(stored, 8),
                Segments.timeAt(stored, TAIL_BYTES));
        return new Windowed<>(Segments.keyOf(stored, TAIL_BYTES), window);
    }
}
