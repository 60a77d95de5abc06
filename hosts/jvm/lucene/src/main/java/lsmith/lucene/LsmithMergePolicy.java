package lsmith.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import lsmith.LsmithException;
import lsmith.Pick;
import lsmith.Policy;
import lsmith.Runs;
import lsmith.lucene.Segments.Segment;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;

/**
 * A Lucene merge policy that asks a policy of lsmith, such as {@code tiered(ratio=14)}.
 *
 * <p>A segment is a run. Segments are runs in the order of their age. The size of a run is the size
 * of its segment, less the share of deleted documents. Segments that are being merged are busy.
 * Segments of more than half of {@link #setMaxMergedSegmentMB the largest merged segment} are
 * settled: they are not shown to the policy, so that their neighbours are neighbours of each other.
 * If more than {@link #setDeletesPctAllowed} percent of all documents are deleted, the segments
 * with the largest share of them are written anew.
 *
 * <p>What the policy remembers is in the diagnostics of the segments, so that one object serves any
 * number of writers and restarts.
 */
public class LsmithMergePolicy extends MergePolicy {
    /** The policy that is asked unless another one is set. */
    public static final String POLICY_USUAL = "tiered(ratio=14)";

    private static final double MB = 1024 * 1024;

    private String spec = POLICY_USUAL;
    private long largest = 5L << 30;
    private int maxMergesAtOnce = 4;
    private double deletesPctAllowed = 20;
    private double forceMergeDeletesPctAllowed = 10;
    private long fullFlushMergeBytes = 2 << 20;

    /** Made when it is first asked, because setters come in any order. */
    private Policy policy;

    private final Runs runs = new Runs();

    /** Makes a policy with all settings at their defaults. */
    public LsmithMergePolicy() {
        super(0.1, DEFAULT_MAX_CFS_SEGMENT_SIZE);
    }

    /**
     * Sets the spec of the policy that is asked. If it has a parameter {@code largest} that the
     * spec leaves out, that becomes the largest merged segment.
     *
     * @throws LsmithException if there is no such policy, or if it asks for more than merges of
     *     neighbouring whole segments
     */
    public synchronized void setPolicy(String spec) {
        Policy made = make(spec);
        forget();
        this.spec = spec;
        policy = made;
    }

    /** Returns the spec of the policy that is asked. */
    public synchronized String getPolicy() {
        return spec;
    }

    /**
     * Sets the size of the largest segment that merges make unless they are forced, in MiB. 5 GiB
     * is the default. Segments of more than half of it are merged no more, until deletes make them
     * smaller.
     */
    public synchronized void setMaxMergedSegmentMB(double mb) {
        if (!(mb > 0)) {
            throw new IllegalArgumentException("expected a size above 0 MB, found " + mb);
        }
        largest = bytes(mb);
        forget();
    }

    /** Returns the size of the largest merged segment in MiB. */
    public synchronized double getMaxMergedSegmentMB() {
        return largest / MB;
    }

    /** Sets how many merges may be under way at once, unless they are forced. 4 by default. */
    public synchronized void setMaxMergesAtOnce(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("expected 1 merge or more, found " + count);
        }
        maxMergesAtOnce = count;
    }

    /** Returns how many merges may be under way at once. */
    public synchronized int getMaxMergesAtOnce() {
        return maxMergesAtOnce;
    }

    /**
     * Sets the percentage of deleted documents in the index above which segments are written anew
     * because of it, from 5 to 100. 20 by default, as in Lucene's own policy.
     */
    public synchronized void setDeletesPctAllowed(double percent) {
        if (!(percent >= 5 && percent <= 100)) {
            throw new IllegalArgumentException("expected 5 to 100 percent, found " + percent);
        }
        deletesPctAllowed = percent;
    }

    /** Returns the percentage of deleted documents that the index may have. */
    public synchronized double getDeletesPctAllowed() {
        return deletesPctAllowed;
    }

    /**
     * Sets the percentage of deleted documents above which {@code forceMergeDeletes} writes a
     * segment anew, from 0 to 100. 10 by default.
     */
    public synchronized void setForceMergeDeletesPctAllowed(double percent) {
        if (!(percent >= 0 && percent <= 100)) {
            throw new IllegalArgumentException("expected 0 to 100 percent, found " + percent);
        }
        forceMergeDeletesPctAllowed = percent;
    }

    /** Returns the percentage above which {@code forceMergeDeletes} writes a segment anew. */
    public synchronized double getForceMergeDeletesPctAllowed() {
        return forceMergeDeletesPctAllowed;
    }

    /**
     * Sets the size in MiB below which segments are merged before a commit or a new reader shows
     * them, if a merge of them is due. 2 by default.
     */
    public synchronized void setFullFlushMergeMB(double mb) {
        if (!(mb >= 0)) {
            throw new IllegalArgumentException("expected a size of 0 MB or more, found " + mb);
        }
        fullFlushMergeBytes = bytes(mb);
    }

    /** Returns the size in MiB below which segments are merged before they are shown. */
    public synchronized double getFullFlushMergeMB() {
        return fullFlushMergeBytes / MB;
    }

    private static long bytes(double mb) {
        return (long) Math.min(Long.MAX_VALUE, mb * MB);
    }

    @Override
    protected synchronized long maxFullFlushMergeSize() {
        return fullFlushMergeBytes;
    }

    private void forget() {
        if (policy != null) {
            policy.close();
            policy = null;
        }
    }

    /** Builds a policy, with the largest merged segment if it has a parameter for it. */
    private Policy make(String spec) {
        Policy plain = new Policy(spec);
        try {
            plain.requireWholeRuns();
        } catch (LsmithException error) {
            plain.close();
            throw error;
        }
        String text = plain.spec();
        if (text.contains("largest=")) {
            return plain;
        }
        String head = text.endsWith(")") ? text.substring(0, text.length() - 1) + ", " : text + "(";
        try {
            Policy bounded = new Policy(head + "largest=" + largest + "B)");
            plain.close();
            return bounded;
        } catch (LsmithException error) {
            // It has no such parameter. Its merges are cut here.
            return plain;
        }
    }

    private Policy policy() {
        if (policy == null) {
            policy = make(spec);
        }
        return policy;
    }

    @Override
    public synchronized MergeSpecification findMerges(
            MergeTrigger trigger, SegmentInfos infos, MergeContext context) throws IOException {
        Segments segments = new Segments(infos, context);
        List<OneMerge> merges = new ArrayList<>();
        int free = maxMergesAtOnce - mergesUnderWay(segments.all());
        while (merges.size() < free) {
            OneMerge merge = nextMerge(segments);
            if (merge == null) {
                merge = nextRewrite(segments);
            }
            if (merge == null) {
                break;
            }
            merges.add(merge);
        }
        return specification(merges);
    }

    /** Neighbours that are busy count as one merge: Lucene does not say whose they are. */
    private static int mergesUnderWay(List<Segment> segments) {
        int count = 0;
        boolean wasBusy = false;
        for (Segment segment : segments) {
            count += segment.isBusy && !wasBusy ? 1 : 0;
            wasBusy = segment.isBusy;
        }
        return count;
    }

    /** Returns the merge that the policy asks for, and makes its segments busy. */
    private OneMerge nextMerge(Segments segments) {
        List<Segment> shown = new ArrayList<>(segments.all());
        shown.removeIf(segment -> segment.bytes > largest / 2 && !segment.isBusy);
        while (!shown.isEmpty()) {
            segments.fill(runs, shown);
            Pick pick = policy().pick(runs);
            if (pick == null) {
                return null;
            }
            int end = endWithinLargest(shown, pick);
            if (end - pick.from() > 1) {
                return merge(segments, shown.subList(pick.from(), end), pick);
            }
            // The policy knows no largest merge: the run beyond it and older ones stay as they are.
            shown = shown.subList(0, end);
        }
        return null;
    }

    private int endWithinLargest(List<Segment> shown, Pick pick) {
        long bytes = 0;
        for (int index = pick.from(); index < pick.end(); index++) {
            bytes += shown.get(index).bytes;
            if (bytes > largest) {
                return index;
            }
        }
        return pick.end();
    }

    /** Returns a merge of the one segment with most deletes, if the index has too many. */
    private OneMerge nextRewrite(Segments segments) {
        long deleted = 0;
        long documents = 0;
        Segment most = null;
        for (Segment segment : segments.all()) {
            int live = segment.info.info.maxDoc() - segment.deleted;
            documents += live;
            if (segment.isBusy) {
                continue;
            }
            documents += segment.deleted;
            deleted += segment.deleted;
            if (most == null || segment.deletedShare() > most.deletedShare()) {
                most = segment;
            }
        }
        boolean isDue = most != null && deleted * 100.0 > deletesPctAllowed * documents;
        return isDue ? merge(segments, List.of(most), null) : null;
    }

    /** Returns a merge of neighbours, newest first, and makes them busy. */
    private static OneMerge merge(Segments segments, List<Segment> inputs, Pick pick) {
        Map<String, String> history = segments.history(inputs, pick);
        List<SegmentCommitInfo> oldestFirst = new ArrayList<>();
        for (Segment segment : inputs) {
            segment.isBusy = true;
            oldestFirst.add(segment.info);
        }
        Collections.reverse(oldestFirst);
        return new NotedMerge(oldestFirst, history);
    }

    private static MergeSpecification specification(List<OneMerge> merges) {
        if (merges.isEmpty()) {
            return null;
        }
        MergeSpecification specification = new MergeSpecification();
        merges.forEach(specification::add);
        return specification;
    }

    /**
     * Returns the merges of neighbours that leave {@code maxSegmentCount} segments and write least.
     * They may be larger than the largest merged segment. If one segment is asked for, it has no
     * deletes.
     */
    @Override
    public synchronized MergeSpecification findForcedMerges(
            SegmentInfos infos,
            int maxSegmentCount,
            Map<SegmentCommitInfo, Boolean> segmentsToMerge,
            MergeContext context)
            throws IOException {
        Segments segments = new Segments(infos, context);
        List<Segment> eligible = new ArrayList<>(segments.all());
        eligible.removeIf(segment -> !segmentsToMerge.containsKey(segment.info));
        // Lucene asks again when the merges that are under way are done.
        if (eligible.isEmpty() || eligible.stream().anyMatch(segment -> segment.isBusy)) {
            return null;
        }
        List<OneMerge> merges = new ArrayList<>();
        if (eligible.size() > maxSegmentCount) {
            for (List<Segment> row : ForcedMerges.into(maxSegmentCount, eligible)) {
                merges.add(merge(segments, row, null));
            }
        } else if (maxSegmentCount == 1 && isLeftAsItWas(infos, eligible.get(0), segmentsToMerge,
                context)) {
            merges.add(merge(segments, eligible, null));
        }
        return specification(merges);
    }

    /** Returns true if no forced merge has written the last segment yet, and one would change it. */
    private boolean isLeftAsItWas(
            SegmentInfos infos,
            Segment segment,
            Map<SegmentCommitInfo, Boolean> segmentsToMerge,
            MergeContext context)
            throws IOException {
        return segmentsToMerge.get(segment.info) && !isMerged(infos, segment.info, context);
    }

    /**
     * Returns the merges that write all segments anew that have more deleted documents than {@link
     * #setForceMergeDeletesPctAllowed} percent.
     */
    @Override
    public synchronized MergeSpecification findForcedDeletesMerges(
            SegmentInfos infos, MergeContext context) throws IOException {
        Segments segments = new Segments(infos, context);
        double allowed = forceMergeDeletesPctAllowed / 100;
        List<OneMerge> merges = new ArrayList<>();
        for (List<Segment> row :
                ForcedMerges.withoutDeletes(allowed, largest, segments.all())) {
            merges.add(merge(segments, row, null));
        }
        return specification(merges);
    }

    @Override
    public synchronized String toString() {
        return String.format(Locale.ROOT, "[LsmithMergePolicy: policy=%s, maxMergedSegmentMB=%.1f,"
                + " maxMergesAtOnce=%d, deletesPctAllowed=%.1f, forceMergeDeletesPctAllowed=%.1f]",
                spec, largest / MB, maxMergesAtOnce, deletesPctAllowed,
                forceMergeDeletesPctAllowed);
    }
}
