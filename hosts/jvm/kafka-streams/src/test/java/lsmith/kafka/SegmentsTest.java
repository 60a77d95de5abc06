package lsmith.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Bytes;
import org.junit.jupiter.api.Test;

class SegmentsTest {
    private static final int TAIL_BYTES = 12;

    private final Segments segments = new Segments(1000, 500);

    private static Bytes key(String key) {
        return Bytes.wrap(key.getBytes());
    }

    private KeyBounds range(String from, String to) {
        List<KeyBounds> ranges = segments.ranges(key(from), key(to), 0, 100, TAIL_BYTES, false);
        assertEquals(1, ranges.size());
        return ranges.get(0);
    }

    private boolean has(KeyBounds range, String key, byte tail) {
        byte[] whole = Arrays.copyOf(key.getBytes(), key.length() + TAIL_BYTES);
        Arrays.fill(whole, key.length(), whole.length, tail);
        byte[] stored = segments.stored(0, whole);
        return Arrays.compareUnsigned(range.from(), stored) <= 0
                && Arrays.compareUnsigned(stored, range.to()) < 0;
    }

    /** What broke: the range of one key had all keys behind it in its segment. */
    @Test
    void theRangeOfOneKeyHasNoOtherOne() {
        assertTrue(segments.take(0, null));
        KeyBounds one = range("user1", "user1");
        assertTrue(has(one, "user1", (byte) 0));
        assertTrue(has(one, "user1", (byte) 0x7f));
        assertFalse(has(one, "user2", (byte) 0));
        // Shorter keys whose time is greater than the bytes of a longer one.
        assertTrue(has(range("us", "user1"), "us", (byte) 0x7f));
    }

    /** What broke: such a segment was ordered behind all others, and expired with them. */
    @Test
    void timesBeforeZeroAreTooOld() {
        assertFalse(segments.take(-1, null));
        assertTrue(segments.take(0, null));
    }
}
