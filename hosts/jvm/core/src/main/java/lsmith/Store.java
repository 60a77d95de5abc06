package lsmith;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * An open store: a directory with a sorted map from keys to values. Any number of threads may use
 * it. A write survives the death of the process once it has returned, and power loss once
 * {@link #sync} has returned. Keys and values are copied once on their way in and once on their way
 * out.
 */
public final class Store extends Handle {
    static {
        Native.ensureLoaded();
    }

    /**
     * Opens the store in {@code directory}, or makes one.
     *
     * @param options options as text, such as {@code policy=tiered(ratio=4)}; docs/c.md has all
     * @param shared the memory and the threads that it shares with other stores; null for its own
     */
    public Store(Path directory, String options, Shared shared) {
        super("store", openWith(directory, options, shared));
    }

    private static long openWith(Path directory, String options, Shared shared) {
        byte[] path = directory.toString().getBytes(StandardCharsets.UTF_8);
        byte[] text = options.getBytes(StandardCharsets.UTF_8);
        if (shared == null) {
            return open(path, text, 0);
        }
        long handle = shared.use();
        try {
            return open(path, text, handle);
        } finally {
            shared.done();
        }
    }

    /** Writes a value. */
    public void put(byte[] key, byte[] value) {
        if (key == null || value == null) {
            throw new NullPointerException("expected a key and a value, found null");
        }
        long handle = use();
        try {
            put(handle, key, value);
        } finally {
            done();
        }
    }

    /** Deletes a key, present or not. */
    public void delete(byte[] key) {
        if (key == null) {
            throw new NullPointerException("expected a key, found null");
        }
        long handle = use();
        try {
            delete(handle, key);
        } finally {
            done();
        }
    }

    /** Deletes all keys from {@code from} up to, not including, {@code to}; null is no bound. */
    public void deleteRange(byte[] from, byte[] to) {
        long handle = use();
        try {
            deleteRange(handle, from, to);
        } finally {
            done();
        }
    }

    /** Returns the value of a key, or null if it has none. */
    public byte[] get(byte[] key) {
        if (key == null) {
            throw new NullPointerException("expected a key, found null");
        }
        long handle = use();
        try {
            return get(handle, key);
        } finally {
            done();
        }
    }

    /** Writes a batch, at once or not at all. It stays as it is. */
    public void write(Batch batch) {
        if (batch.bytes() == 0) {
            return;
        }
        long handle = use();
        try {
            write(handle, batch.ops(), batch.bytes());
        } finally {
            done();
        }
    }

    /** Makes all writes so far survive power loss. */
    public void sync() {
        long handle = use();
        try {
            sync(handle);
        } finally {
            done();
        }
    }

    /**
     * Returns the entries from {@code from} up to, not including, {@code to}; null is no bound.
     *
     * @param backward whether the last entry comes first
     */
    public Scan scan(byte[] from, byte[] to, boolean backward) {
        long handle = use();
        try {
            return new Scan(scan(handle, from, to), backward);
        } finally {
            done();
        }
    }

    /**
     * Returns about how many keys have a value. Keys that were written again and not merged yet
     * count more than once, and deletes of absent keys make the count too small.
     */
    public long approximateLen() {
        long handle = use();
        try {
            return approximateLen(handle);
        } finally {
            done();
        }
    }

    /** Returns {@code stats} or {@code memory}: a name and a number on each line. */
    public String property(String name) {
        long handle = use();
        try {
            byte[] text = property(handle, name.getBytes(StandardCharsets.UTF_8));
            return new String(text, StandardCharsets.UTF_8);
        } finally {
            done();
        }
    }

    @Override
    void destroy(long handle) {
        destroyStore(handle);
    }

    private static native long open(byte[] path, byte[] options, long shared);

    private static native void destroyStore(long store);

    private static native void put(long store, byte[] key, byte[] value);

    private static native void delete(long store, byte[] key);

    private static native void deleteRange(long store, byte[] from, byte[] to);

    private static native byte[] get(long store, byte[] key);

    private static native void write(long store, byte[] ops, int len);

    private static native void sync(long store);

    private static native long scan(long store, byte[] from, byte[] to);

    private static native long approximateLen(long store);

    private static native byte[] property(long store, byte[] name);
}
