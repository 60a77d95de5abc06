package lsmith;

import java.nio.charset.StandardCharsets;

/**
 * A merge policy (compaction strategy) of lsmith: runs go in, the next merge comes out. Any thread
 * may call it; calls take turns.
 */
public final class Policy implements AutoCloseable {
    private final String spec;
    private long handle;

    /**
     * Builds the policy that a spec describes, such as {@code tiered(ratio=4)}.
     *
     * @throws LsmithException if there is no such policy; the message names the nearest
     */
    public Policy(String spec) {
        Native.ensureLoaded();
        handle = create(text(spec));
        this.spec = new String(spec(handle), StandardCharsets.UTF_8);
    }

    /** Returns the spec of the policy, with its defaults. */
    public String spec() {
        return spec;
    }

    /**
     * Tries the policy on many trees.
     *
     * @throws LsmithException if it breaks a law of policies; the message says which, on which tree
     */
    public synchronized void check() {
        check(open());
    }

    /**
     * Fails unless the policy can decide about the runs of another store, as {@link #pick} asks.
     *
     * @throws LsmithException if it needs more than sizes, ages and levels of whole runs; the
     *     message says what
     */
    public synchronized void requireWholeRuns() {
        checkPick(open());
    }

    /**
     * Returns the plan for the tree in the text {@code view}, or null if no merge is due.
     *
     * @throws LsmithException if the text is no view
     */
    public synchronized String nextMerge(String view) {
        byte[] plan = nextMerge(open(), text(view));
        return plan == null ? null : new String(plan, StandardCharsets.UTF_8);
    }

    /**
     * Returns the next merge of runs of another store, or null if none is due or it has to wait
     * for a merge that is under way.
     *
     * @throws LsmithException if the policy asks for something else than a merge of neighbouring
     *     whole runs
     */
    public Pick pick(Runs runs) {
        String plan = nextMerge(runs.view());
        Pick pick = plan == null ? null : Pick.of(plan, runs, spec);
        return pick == null || pick.isBusy(runs) ? null : pick;
    }

    /** Frees the policy. Calls that follow fail. */
    @Override
    public synchronized void close() {
        long closed = handle;
        handle = 0;
        destroy(closed);
    }

    private long open() {
        if (handle == 0) {
            throw new IllegalStateException("expected an open policy, found `" + spec
                    + "` after its close()");
        }
        return handle;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static native long create(byte[] spec);

    private static native void destroy(long policy);

    private static native byte[] spec(long policy);

    private static native void check(long policy);

    private static native void checkPick(long policy);

    private static native byte[] nextMerge(long policy, byte[] view);
}
