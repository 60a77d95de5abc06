package lsmith.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import lsmith.Notes;
import lsmith.Pick;
import lsmith.Runs;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.MergePolicy.MergeContext;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;

/**
 * The segments of an index at one moment, newest first, with what a policy wants to know of them.
 *
 * <p>Lucene keeps segments in the order of age: a merged segment takes the place of the oldest of
 * its inputs. It has no levels, and does not count flushes. Merges of this policy write both into
 * the diagnostics of the segments that they make, so they are part of the index. What others have
 * merged is taken for as many flushes of mean size as it has bytes.
 */
final class Segments {
    /** Names of diagnostics. Values are decimal numbers, but for the notes. */
    static final String LEVEL = "lsmith.level";

    static final String FLUSHES = "lsmith.flushes";
    static final String FLUSHED = "lsmith.flushed";
    static final String NOTE = "lsmith.note.";

    /** The size of a level over the size of the level above, for segments that have no level. */
    private static final double RATIO = 4;

    /** Trees of lsmith have no more levels. What diagnostics say beyond it is damaged. */
    private static final int LEVEL_MAX = 60;

    /** A segment. */
    static final class Segment {
        final SegmentCommitInfo info;
        /** Bytes, less the share of deleted documents. */
        final long bytes;
        final int deleted;
        boolean isBusy;
        long flushes;
        long flushedBytes;
        private int level = -1;

        Segment(SegmentCommitInfo info, long bytes, int deleted, boolean isBusy) {
            this.info = info;
            this.bytes = bytes;
            this.deleted = deleted;
            this.isBusy = isBusy;
        }

        /** Returns its level; by its number of flushes if nothing says it. */
        int level() {
            return level >= 0 ? level : (int) (Math.log(flushes) / Math.log(RATIO) + 0.01);
        }

        double deletedShare() {
            return info.info.maxDoc() <= 0 ? 0 : (double) deleted / info.info.maxDoc();
        }
    }

    private final List<Segment> all = new ArrayList<>();
    private long flushes;
    private long flushedBytes;

    Segments(SegmentInfos infos, MergeContext context) throws IOException {
        Set<SegmentCommitInfo> merging = context.getMergingSegments();
        List<SegmentCommitInfo> oldestFirst = infos.asList();
        for (int index = oldestFirst.size() - 1; index >= 0; index--) {
            SegmentCommitInfo info = oldestFirst.get(index);
            int deleted = Math.min(context.numDeletesToMerge(info), info.info.maxDoc());
            long size = info.sizeInBytes();
            double live = info.info.maxDoc() <= 0 ? 1 : 1 - (double) deleted / info.info.maxDoc();
            all.add(new Segment(info, (long) (size * live), deleted, merging.contains(info)));
        }
        countFlushes();
    }

    List<Segment> all() {
        return all;
    }

    /** Reads the history of each segment, and infers it where there is none. */
    private void countFlushes() throws IOException {
        List<Segment> unknown = new ArrayList<>();
        for (Segment segment : all) {
            Map<String, String> diagnostics = segment.info.info.getDiagnostics();
            segment.level = (int) Math.min(LEVEL_MAX, number(diagnostics, LEVEL, -1));
            segment.flushes = number(diagnostics, FLUSHES, 0);
            segment.flushedBytes = number(diagnostics, FLUSHED, 0);
            if (segment.flushes == 0 && isMerged(segment.info)) {
                unknown.add(segment);
                continue;
            }
            if (segment.flushes == 0) {
                segment.flushes = 1;
                segment.flushedBytes = segment.info.sizeInBytes();
                segment.level = 0;
            }
            flushes += segment.flushes;
            flushedBytes += segment.flushedBytes;
        }
        // Where all are unknown, the least of them was merged from a level of flushes.
        double mean = flushes == 0 ? least() / RATIO : (double) flushedBytes / flushes;
        for (Segment segment : unknown) {
            double count = segment.bytes / Math.max(1, mean);
            segment.flushes = Math.max((long) RATIO, Math.round(count));
            segment.flushedBytes = segment.bytes;
            flushes += segment.flushes;
            flushedBytes += segment.bytes;
        }
    }

    private long least() {
        return all.stream().mapToLong(segment -> segment.bytes).min().orElse(0);
    }

    /** Lucene's own simulations have the source among the attributes. */
    private static boolean isMerged(SegmentCommitInfo info) {
        String source = info.info.getDiagnostics().get(IndexWriter.SOURCE);
        source = source == null ? info.info.getAttribute(IndexWriter.SOURCE) : source;
        return IndexWriter.SOURCE_MERGE.equals(source);
    }

    private static long number(Map<String, String> diagnostics, String name, long otherwise) {
        String text = diagnostics.get(name);
        try {
            return text == null ? otherwise : Math.max(0, Long.parseLong(text));
        } catch (NumberFormatException error) {
            return otherwise;
        }
    }

    /** Returns the mean bytes of a flush. */
    long meanFlush() {
        return flushes == 0 ? 0 : flushedBytes / flushes;
    }

    /** Fills {@code runs} with the segments {@code shown}, which are some of these, in order. */
    void fill(Runs runs, List<Segment> shown) {
        runs.clear(meanFlush(), flushes, flushedBytes);
        runs.notes().clear();
        notes().forEach(runs.notes()::put);
        int level = 0;
        for (Segment segment : shown) {
            // Older runs are in no lower level. Forced merges may have left it otherwise.
            level = Math.max(level, segment.level());
            runs.add(segment.bytes, level, segment.isBusy);
        }
    }

    /** Returns what the policy remembers: its last merge has left that with its output. */
    private Map<String, String> notes() {
        Segment last = null;
        for (Segment segment : all) {
            boolean isNoted = segment.info.info.getDiagnostics().containsKey(FLUSHES);
            if (isNoted && (last == null || number(segment) > number(last))) {
                last = segment;
            }
        }
        Map<String, String> notes = new HashMap<>();
        if (last != null) {
            last.info.info.getDiagnostics().forEach((name, value) -> {
                if (name.startsWith(NOTE)) {
                    notes.put(name.substring(NOTE.length()), value);
                }
            });
        }
        return notes;
    }

    /** Returns the number in the name of a segment. IndexWriter counts them up. */
    private static long number(Segment segment) {
        try {
            return Long.parseLong(segment.info.info.name.substring(1), Character.MAX_RADIX);
        } catch (NumberFormatException | IndexOutOfBoundsException error) {
            return 0;
        }
    }

    /**
     * Returns what the merge of {@code inputs} leaves for the next look at the index. {@code pick}
     * is null if the policy has not asked for it: then its level is the level of its oldest input.
     */
    Map<String, String> history(List<Segment> inputs, Pick pick) {
        Map<String, String> history = new HashMap<>();
        long flushes = inputs.stream().mapToLong(segment -> segment.flushes).sum();
        long flushed = inputs.stream().mapToLong(segment -> segment.flushedBytes).sum();
        int level = pick == null ? inputs.get(inputs.size() - 1).level() : pick.level();
        history.put(FLUSHES, Long.toString(flushes));
        history.put(FLUSHED, Long.toString(flushed));
        history.put(LEVEL, Integer.toString(level));
        Notes after = new Notes();
        notes().forEach(after::put);
        if (pick != null) {
            after.apply(pick);
        }
        after.values().forEach((name, value) -> history.put(NOTE + name, value));
        return history;
    }
}
