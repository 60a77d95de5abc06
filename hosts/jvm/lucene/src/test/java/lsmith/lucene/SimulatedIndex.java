package lsmith.lucene;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.lucene.codecs.Codec;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.index.MergePolicy.MergeSpecification;
import org.apache.lucene.index.MergePolicy.OneMerge;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FilterDirectory;
import org.apache.lucene.util.InfoStream;
import org.apache.lucene.util.StringHelper;
import org.apache.lucene.util.Version;

/**
 * An index of sizes alone, as in Lucene's {@code BaseMergePolicyTestCase}: flushes, deletes that
 * are spread evenly, and merges that are done at once. It tells merges where their output is, as
 * IndexWriter does, and counts what they cost.
 */
final class SimulatedIndex {
    /** What a policy has cost. */
    static final class Costs {
        long flushed;
        long merged;
        long longest;
        int merges;
        /** Bytes and number of merges of one segment, for its deletes alone. */
        long rewritten;
        int rewrites;
        int most;
        private long segments;
        private double deletedShare;
        private int looks;

        double written() {
            return (double) (flushed + merged) / flushed;
        }

        double meanSegments() {
            return (double) segments / looks;
        }

        double meanDeletedShare() {
            return deletedShare / looks;
        }
    }

    private final MergePolicy policy;
    private final Sizes directory = new Sizes();
    private final Costs costs = new Costs();
    private SegmentInfos infos = new SegmentInfos(Version.LATEST.major);
    private int names;

    SimulatedIndex(MergePolicy policy) {
        this.policy = policy;
    }

    Costs costs() {
        return costs;
    }

    SegmentInfos infos() {
        return infos;
    }

    /** Adds a segment, and merges until no merge is due. */
    void flush(int documents, long bytes) throws IOException {
        costs.flushed += bytes;
        infos.add(segment(documents, bytes, IndexWriter.SOURCE_FLUSH));
        MergeSpecification merges =
                policy.findFullFlushMerges(MergeTrigger.FULL_FLUSH, infos, context());
        if (merges == null) {
            merges = policy.findMerges(MergeTrigger.SEGMENT_FLUSH, infos, context());
        }
        while (merges != null) {
            for (OneMerge merge : merges.merges) {
                merge(merge);
            }
            merges = policy.findMerges(MergeTrigger.MERGE_FINISHED, infos, context());
        }
        long all = 0;
        long deleted = 0;
        for (SegmentCommitInfo info : infos) {
            all += info.info.maxDoc();
            deleted += info.getDelCount();
        }
        costs.segments += infos.size();
        costs.most = Math.max(costs.most, infos.size());
        costs.deletedShare += (double) deleted / all;
        costs.looks++;
    }

    /** Adds a segment of one document, which a merge with this history has made. Merges nothing. */
    void add(long bytes, Map<String, String> history) {
        SegmentCommitInfo added = segment(1, bytes, IndexWriter.SOURCE_MERGE);
        added.info.addDiagnostics(history);
        infos.add(added);
    }

    /** Deletes documents evenly in all segments. */
    void delete(int count) {
        long live = 0;
        for (SegmentCommitInfo info : infos) {
            live += live(info);
        }
        List<SegmentCommitInfo> after = new ArrayList<>();
        int left = count;
        for (int index = 0; index < infos.size(); index++) {
            SegmentCommitInfo info = infos.info(index);
            int share = (int) Math.min(left, Math.ceil((double) count * live(info) / live));
            share = index == infos.size() - 1 ? left : share;
            left -= share;
            if (live(info) > share) {
                after.add(new SegmentCommitInfo(info.info, info.getDelCount() + share, 0,
                        info.getDelGen() + 1, -1, -1, StringHelper.randomId()));
            }
        }
        infos = new SegmentInfos(Version.LATEST.major);
        infos.addAll(after);
    }

    private void merge(OneMerge merge) throws IOException {
        double bytes = 0;
        int documents = 0;
        for (SegmentCommitInfo info : merge.segments) {
            bytes += (double) info.sizeInBytes() * live(info) / info.info.maxDoc();
            documents += live(info);
        }
        SegmentCommitInfo output = segment(documents, (long) bytes, IndexWriter.SOURCE_MERGE);
        merge.setMergeInfo(output);
        List<SegmentCommitInfo> after = new ArrayList<>(infos.asList());
        int place = after.indexOf(merge.segments.stream()
                .min((a, b) -> after.indexOf(a) - after.indexOf(b)).orElseThrow());
        after.set(place, output);
        after.removeAll(merge.segments);
        infos = new SegmentInfos(Version.LATEST.major);
        infos.addAll(after);
        costs.merged += (long) bytes;
        costs.longest = Math.max(costs.longest, (long) bytes);
        costs.merges++;
        if (merge.segments.size() == 1) {
            costs.rewritten += (long) bytes;
            costs.rewrites++;
        }
    }

    private static int live(SegmentCommitInfo info) {
        return info.info.maxDoc() - info.getDelCount();
    }

    private SegmentCommitInfo segment(int documents, long bytes, String source) {
        String name = "_" + Integer.toString(names++, Character.MAX_RADIX);
        SegmentInfo info = new SegmentInfo(directory, Version.LATEST, Version.LATEST, name,
                documents, false, false, Codec.getDefault(),
                Map.of(IndexWriter.SOURCE, source), StringHelper.randomId(), Map.of(), null);
        info.setFiles(Set.of(name + ".cfs"));
        directory.sizes.put(name + ".cfs", bytes);
        return new SegmentCommitInfo(info, 0, 0, -1, -1, -1, StringHelper.randomId());
    }

    /** A directory that knows how long its files would be. */
    private static final class Sizes extends FilterDirectory {
        private final Map<String, Long> sizes = new HashMap<>();

        Sizes() {
            super(new ByteBuffersDirectory());
        }

        @Override
        public long fileLength(String name) {
            return sizes.getOrDefault(name, 0L);
        }
    }

    static MergePolicy.MergeContext context() {
        return context(Collections.emptySet());
    }

    /** Returns what a writer tells, while {@code merging} are being merged. */
    static MergePolicy.MergeContext context(Set<SegmentCommitInfo> merging) {
        return new MergePolicy.MergeContext() {
            @Override
            public int numDeletesToMerge(SegmentCommitInfo info) {
                return info.getDelCount();
            }

            @Override
            public int numDeletedDocs(SegmentCommitInfo info) {
                return info.getDelCount();
            }

            @Override
            public InfoStream getInfoStream() {
                return InfoStream.NO_OUTPUT;
            }

            @Override
            public Set<SegmentCommitInfo> getMergingSegments() {
                return merging;
            }
        };
    }

    /** Returns the directory, for segments that are made by hand. */
    Directory directory() {
        return directory;
    }
}
