package lsmith;

/**
 * What several stores of a process share: one limit on their memory, and the threads that merge.
 * Stores keep it when it is closed.
 */
public final class Shared extends Handle {
    static {
        Native.ensureLoaded();
    }

    /**
     * Makes what stores share.
     *
     * @param memoryBytes the limit on the memory of all stores together, at least 1 MiB; 0 for none
     * @param threads the threads that merge for all; 0 for threads of each store's own
     */
    public Shared(long memoryBytes, int threads) {
        super("handle of what stores share", create(memoryBytes, check(threads)));
    }

    private static int check(int threads) {
        if (threads < 0) {
            throw new LsmithException(ErrorKind.INVALID_ARGUMENT,
                    "expected 0 threads or more, found " + threads);
        }
        return threads;
    }

    /** Returns the bytes that all stores hold in memory now; 0 without a limit. */
    public long memoryBytes() {
        long handle = use();
        try {
            return memory(handle);
        } finally {
            done();
        }
    }

    @Override
    void destroy(long handle) {
        destroyShared(handle);
    }

    private static native long create(long memoryBytes, int threads);

    private static native void destroyShared(long shared);

    private static native long memory(long shared);
}
