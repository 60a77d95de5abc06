package lsmith;

import java.util.Arrays;

/**
 * Writes that take effect together. They cross into the library at once, which costs one call for
 * all. One thread at a time uses a batch.
 */
public final class Batch {
    /** Bytes in front of a key: what it is, and the lengths of key and value. */
    private static final int HEAD_BYTES = 9;

    private byte[] ops = new byte[1024];
    private int length;

    /** Makes an empty batch. */
    public Batch() {}

    /** Adds a value. */
    public void put(byte[] key, byte[] value) {
        add((byte) 1, key, value);
    }

    /** Adds a delete of a key, present or not. */
    public void delete(byte[] key) {
        add((byte) 0, key, new byte[0]);
    }

    /** Returns the bytes that the batch takes. */
    public int bytes() {
        return length;
    }

    /** Removes all writes. */
    public void clear() {
        length = 0;
    }

    byte[] ops() {
        return ops;
    }

    private void add(byte what, byte[] key, byte[] value) {
        long end = (long) length + HEAD_BYTES + key.length + value.length;
        if (end > Integer.MAX_VALUE - 16) {
            throw new LsmithException(ErrorKind.INVALID_ARGUMENT,
                    "expected a batch below 2 GiB, found " + end + " bytes: write it in parts");
        }
        if (end > ops.length) {
            ops = Arrays.copyOf(ops, (int) Math.min(Integer.MAX_VALUE - 16, Math.max(end, 2L * length)));
        }
        ops[length] = what;
        putInt(length + 1, key.length);
        putInt(length + 5, value.length);
        System.arraycopy(key, 0, ops, length + HEAD_BYTES, key.length);
        System.arraycopy(value, 0, ops, length + HEAD_BYTES + key.length, value.length);
        length = (int) end;
    }

    private void putInt(int at, int number) {
        for (int i = 0; i < 4; i++) {
            ops[at + i] = (byte) (number >>> (24 - 8 * i));
        }
    }
}
