package lsmith.kafka;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListSet;
import lsmith.Scan;
import lsmith.Store;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;

/**
 * Time in segments. The number of its segment stands in front of each stored key, as eight
 * big-endian bytes. So what expires lies together, and one range delete removes it.
 *
 * <pre>
 * window store    segment of the start   key   start   sequence number (4 bytes)
 * session store   segment of the end     key   end     start
 * </pre>
 *
 * <p>A record is dropped if its whole segment is older than the retention. Reads show nothing older
 * than the retention. Kafka's own stores do the same with a RocksDB for each segment.
 */
final class Segments {
    static final String WRONG_ORDER = "Returning empty iterator for fetch with invalid key range:"
            + " from > to. This may be due to range arguments set in the wrong order, or serdes that"
            + " don't preserve ordering when lexicographically comparing the serialized bytes. Note"
            + " that the built-in numerical serdes do not follow this for negative numbers";

    static final int HEAD_BYTES = 8;

    private final long retentionMs;
    private final long intervalMs;
    /** The segments that may have entries. */
    private final ConcurrentSkipListSet<Long> live = new ConcurrentSkipListSet<>();
    private volatile long streamTime = -1;
    private Sensor dropped;

    Segments(long retentionMs, long intervalMs) {
        this.retentionMs = retentionMs;
        this.intervalMs = intervalMs;
    }

    /** Finds the segments of a store that was opened. */
    void open(Store store, StateStoreContext context) {
        dropped = TaskMetrics.droppedRecordsSensor(Thread.currentThread().getName(),
                context.taskId().toString(), ProcessorContextUtils.metricsImpl(context));
        live.clear();
        byte[] from = null;
        while (true) {
            try (Scan scan = store.scan(from, null, false)) {
                if (!scan.next()) {
                    return;
                }
                long segment = ByteBuffer.wrap(scan.key()).getLong();
                live.add(segment);
                from = head(segment + 1);
            }
        }
    }

    /**
     * Takes in a record of time {@code time}. Deletes segments that have expired. Returns false if
     * the record is too old to be stored, or its time is negative: segments are ordered by bytes.
     */
    boolean take(long time, Store store) {
        if (time < 0) {
            return false;
        }
        streamTime = Math.max(streamTime, time);
        long least = Math.floorDiv(streamTime - retentionMs, intervalMs);
        if (Math.floorDiv(time, intervalMs) < least) {
            return false;
        }
        live.add(Math.floorDiv(time, intervalMs));
        if (live.first() < least) {
            store.deleteRange(null, head(least));
            live.headSet(least).clear();
        }
        return true;
    }

    /** Counts a record that was too old. */
    void noteDropped() {
        dropped.record();
    }

    /** Returns the earliest time that has not expired, or {@code from} if that is later. */
    long unexpired(long from) {
        return Math.max(from, streamTime - retentionMs + 1);
    }

    /** Returns {@code key} as it is stored, for a record of time {@code time}. */
    byte[] stored(long time, byte[] key) {
        ByteBuffer stored = ByteBuffer.allocate(HEAD_BYTES + key.length);
        return stored.putLong(Math.floorDiv(time, intervalMs)).put(key).array();
    }

    private static byte[] head(long segment) {
        return ByteBuffer.allocate(HEAD_BYTES).putLong(segment).array();
    }

    /**
     * Returns the ranges of stored keys, one for each segment from {@code fromTime} to {@code
     * toTime}, of keys from {@code from} up to {@code to}, which null leaves open. Two times follow
     * a key, or a time and a number: {@code tailBytes}. The ranges hold other keys too.
     */
    List<KeyBounds> ranges(Bytes from, Bytes to, long fromTime, long toTime, int tailBytes,
            boolean backward) {
        if (fromTime > toTime || toTime < 0) {
            return List.of();
        }
        long first = Math.floorDiv(Math.max(fromTime, 0), intervalMs);
        byte[] highest = to == null ? null
                : to.equals(from) ? withTail(to.get(), to.get().length, tailBytes)
                : highest(to.get(), tailBytes);
        List<KeyBounds> ranges = new ArrayList<>();
        for (long segment : live.subSet(first, true, Math.floorDiv(toTime, intervalMs), true)) {
            byte[] lower = from == null ? head(segment) : join(segment, from.get());
            byte[] upper = to == null
                    ? head(segment + 1)
                    : KeyBounds.after(join(segment, highest));
            ranges.add(new KeyBounds(lower, upper));
        }
        if (backward) {
            Collections.reverse(ranges);
        }
        return ranges;
    }

    private static byte[] join(long segment, byte[] key) {
        return ByteBuffer.allocate(HEAD_BYTES + key.length).putLong(segment).put(key).array();
    }

    /**
     * Returns the greatest bytes with which a key up to {@code to} can be stored: the tail of a
     * shorter key, a time, can be greater than the bytes that follow in a longer one.
     */
    private static byte[] highest(byte[] to, int tailBytes) {
        byte[] highest = new byte[0];
        for (int length = 0; length <= to.length; length++) {
            byte[] key = withTail(to, length, tailBytes);
            highest = Arrays.compareUnsigned(key, highest) > 0 ? key : highest;
        }
        return highest;
    }

    /** Returns the first {@code length} bytes of a key with the greatest tail. */
    private static byte[] withTail(byte[] key, int length, int tailBytes) {
        byte[] stored = Arrays.copyOf(key, length + tailBytes);
        Arrays.fill(stored, length, stored.length, (byte) 0xff);
        // No time is negative.
        stored[length] = 0x7f;
        return stored;
    }

    /** Returns true if the key of {@code stored} lies from {@code from} to {@code to}. */
    static boolean isBetween(byte[] stored, Bytes from, Bytes to, int tailBytes) {
        int end = stored.length - tailBytes;
        return (from == null || compare(stored, end, from.get()) >= 0)
                && (to == null || compare(stored, end, to.get()) <= 0);
    }

    private static int compare(byte[] stored, int end, byte[] key) {
        return Arrays.compareUnsigned(stored, HEAD_BYTES, end, key, 0, key.length);
    }

    /** Returns the time that stands {@code bytes} bytes before the end of a key. */
    static long timeAt(byte[] key, int bytes) {
        return ByteBuffer.wrap(key).getLong(key.length - bytes);
    }

    /** Returns the key of {@code stored} without the segment and the tail. */
    static Bytes keyOf(byte[] stored, int tailBytes) {
        return Bytes.wrap(Arrays.copyOfRange(stored, HEAD_BYTES, stored.length - tailBytes));
    }
}
