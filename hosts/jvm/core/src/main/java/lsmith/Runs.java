package lsmith;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;

/**
 * The sorted runs of a store that is not lsmith's, as a merge policy sees them. Runs are added
 * newest first. It prints as the text of a view, so that a host gets the plans that lsmith's own
 * store and simulations get for the same sizes.
 *
 * <p>An object may be filled and asked about again and again. One thread at a time uses it.
 */
public final class Runs {
    private static final int INITIAL = 64;

    private long[] bytes = new long[INITIAL];
    private int[] levels = new int[INITIAL];
    private boolean[] busy = new boolean[INITIAL];
    private int count;
    private long memtableBytes;
    private long flushes;
    private long flushedBytes;
    private final Notes notes = new Notes();

    /**
     * Takes out all runs. Notes stay.
     *
     * @param memtableBytes the bytes of a memtable, or the mean bytes of a flush
     * @param flushes the number of flushes so far
     * @param flushedBytes the bytes of all flushes so far
     * @return this object
     */
    public Runs clear(long memtableBytes, long flushes, long flushedBytes) {
        if (memtableBytes < 0 || flushes < 0 || flushedBytes < 0) {
            throw new IllegalArgumentException("expected numbers from 0 on, found "
                    + memtableBytes + " bytes, " + flushes + " flushes of " + flushedBytes);
        }
        this.memtableBytes = memtableBytes;
        this.flushes = flushes;
        this.flushedBytes = flushedBytes;
        count = 0;
        return this;
    }

    /**
     * Adds the next older run.
     *
     * @param bytes its bytes without what is deleted
     * @param level the level that it is in; at least the level of the run before
     * @param busy true if a merge that is under way takes it
     */
    public void add(long bytes, int level, boolean busy) {
        if (bytes < 0 || level < 0 || count > 0 && level < levels[count - 1]) {
            throw new IllegalArgumentException("expected runs of 0 bytes or more in levels from 0"
                    + " on, older ones in no lower level, found " + bytes + " bytes in level "
                    + level + (count > 0 ? " behind level " + levels[count - 1] : ""));
        }
        if (count == this.bytes.length) {
            this.bytes = Arrays.copyOf(this.bytes, 2 * count);
            levels = Arrays.copyOf(levels, 2 * count);
            this.busy = Arrays.copyOf(this.busy, 2 * count);
        }
        this.bytes[count] = bytes;
        levels[count] = level;
        this.busy[count] = busy;
        count++;
    }

    /** Returns the number of runs. */
    public int count() {
        return count;
    }

    /** Returns the bytes of the run at {@code index}; 0 is the newest. */
    public long bytes(int index) {
        return bytes[Objects.checkIndex(index, count)];
    }

    /** Returns the level of the run at {@code index}; 0 is the newest. */
    public int level(int index) {
        return levels[Objects.checkIndex(index, count)];
    }

    /** Returns true if a merge that is under way takes the run at {@code index}. */
    public boolean isBusy(int index) {
        return busy[Objects.checkIndex(index, count)];
    }

    /** Returns what the policy has asked to remember. */
    public Notes notes() {
        return notes;
    }

    /** Returns the view of a tree with these runs. The run at {@code index} has an own number. */
    String view() {
        StringBuilder text = new StringBuilder(64 + 32 * count);
        text.append("view memtable ").append(memtableBytes).append("B\ntree flushes ")
                .append(flushes).append(" flushed ").append(flushedBytes).append('B');
        for (int index = 0; index < count; index++) {
            if (index == 0 || levels[index] != levels[index - 1]) {
                text.append("\nL").append(levels[index]);
            }
            int number = number(index);
            text.append(" r").append(number).append("[t").append(number).append(":.. ")
                    .append(bytes[index]).append("B]");
        }
        text.append('\n');
        notes.appendTo(text);
        appendReservations(text);
        return text.toString();
    }

    /** Neighbours that are busy count as one merge: a host does not know whose they are. */
    private void appendReservations(StringBuilder text) {
        for (int index = 0; index < count; index++) {
            if (!busy[index]) {
                continue;
            }
            text.append("under_way merge");
            for (; index < count && busy[index]; index++) {
                text.append(" r").append(number(index));
            }
            text.append(" over .. in place\n");
        }
    }

    private int number(int index) {
        return count - index;
    }

    /** Returns the index of the run called {@code name} in a plan. */
    int index(String name) {
        try {
            int index = count - Integer.parseInt(name.substring(1));
            if (name.charAt(0) == 'r' && index >= 0 && index < count) {
                return index;
            }
        } catch (NumberFormatException | IndexOutOfBoundsException error) {
            // It is no name of a run. Said below.
        }
        throw new LsmithException(ErrorKind.INVALID_ARGUMENT,
                String.format(Locale.ROOT, "expected one of %d runs, found `%s`", count, name));
    }

    @Override
    public String toString() {
        return view();
    }
}
