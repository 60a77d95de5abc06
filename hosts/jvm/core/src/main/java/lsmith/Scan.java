package lsmith;

import java.nio.ByteBuffer;

/**
 * The entries of a range of keys as they were when the scan began, in the order of keys or backward.
 * It fetches several entries with each call of the library: few at first, then up to 64 KiB. One
 * thread at a time uses a scan; any may close it.
 */
public final class Scan extends Handle {
    private static final int BYTES_MIN = 512;
    private static final int BYTES_MAX = 64 * 1024;

    private final boolean backward;
    private boolean begins = true;
    private int wanted = BYTES_MIN;
    /** Entries that were fetched; null before the first and behind the last. */
    private ByteBuffer entries;
    private byte[] key;
    private byte[] value;

    Scan(long handle, boolean backward) {
        super("scan", handle);
        this.backward = backward;
    }

    /** Goes to the next entry. Returns false if there is none. */
    public boolean next() {
        if (entries == null || !entries.hasRemaining()) {
            entries = fetch();
            if (entries == null) {
                key = null;
                value = null;
                return false;
            }
        }
        key = new byte[entries.getInt()];
        value = new byte[entries.getInt()];
        entries.get(key).get(value);
        return true;
    }

    /** Returns the key of the entry that the scan is on, or null if it is on none. */
    public byte[] key() {
        return key;
    }

    /** Returns the value of the entry that the scan is on, or null if it is on none. */
    public byte[] value() {
        return value;
    }

    private ByteBuffer fetch() {
        if (!begins && entries == null) {
            return null;
        }
        long handle = use();
        try {
            byte[] fetched = next(handle, begins, backward, wanted);
            begins = false;
            wanted = Math.min(BYTES_MAX, wanted * 4);
            return fetched == null ? null : ByteBuffer.wrap(fetched);
        } finally {
            done();
        }
    }

    @Override
    void destroy(long handle) {
        destroyScan(handle);
    }

    private static native void destroyScan(long scan);

    private static native byte[] next(long scan, boolean begins, boolean backward, int wanted);
}
