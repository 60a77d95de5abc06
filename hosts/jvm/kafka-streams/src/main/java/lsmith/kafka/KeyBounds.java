package lsmith.kafka;

/**
 * A range of keys as they are stored: from {@code from} up to, not including, {@code to}; null is no
 * bound.
 */
record KeyBounds(byte[] from, byte[] to) {
    /** Returns the least key behind all that begin with {@code prefix}; null if there is none. */
    static byte[] behind(byte[] prefix) {
        for (int length = prefix.length; length > 0; length--) {
            if (prefix[length - 1] != (byte) 0xff) {
                byte[] key = java.util.Arrays.copyOf(prefix, length);
                key[length - 1]++;
                return key;
            }
        }
        return null;
    }

    /** Returns the least key behind {@code key}. */
    static byte[] after(byte[] key) {
        return java.util.Arrays.copyOf(key, key.length + 1);
    }
}
