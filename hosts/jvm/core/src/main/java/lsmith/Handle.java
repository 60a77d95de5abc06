package lsmith;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A handle of the library that any number of threads may use and close. It is destroyed when it is
 * closed and the last call that uses it has returned, so a call never meets a destroyed handle.
 */
abstract class Handle implements AutoCloseable {
    private static final long CLOSED = 1L << 62;

    private final String name;
    private final long handle;
    /** The number of calls under way, and {@link #CLOSED}. */
    private final AtomicLong uses = new AtomicLong();

    /** Takes over {@code handle}; {@code name} is what errors call it. */
    Handle(String name, long handle) {
        this.name = name;
        this.handle = handle;
    }

    /** Destroys the handle. */
    abstract void destroy(long handle);

    /** Returns the handle for a call, which ends with {@link #done}. */
    final long use() {
        if ((uses.incrementAndGet() & CLOSED) != 0) {
            done();
            throw new LsmithException(ErrorKind.INVALID_ARGUMENT,
                    "expected an open " + name + ", found a closed one");
        }
        return handle;
    }

    /** Ends a call. */
    final void done() {
        if (uses.decrementAndGet() == CLOSED && uses.compareAndSet(CLOSED, -1L << 60)) {
            destroy(handle);
        }
    }

    /** Returns true until the handle is closed. */
    public final boolean isOpen() {
        return uses.get() >= 0 && (uses.get() & CLOSED) == 0;
    }

    /** Closes the handle. Calls under way end first. Closing it again does nothing. */
    @Override
    public void close() {
        uses.incrementAndGet();
        long now = uses.get();
        while (now >= 0 && (now & CLOSED) == 0 && !uses.compareAndSet(now, now | CLOSED)) {
            now = uses.get();
        }
        done();
    }
}
