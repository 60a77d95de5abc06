package lsmith.lucene;

import java.io.IOException;
import java.util.List;
import lsmith.LsmithException;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.index.MergePolicy.MergeSpecification;
import org.apache.lucene.index.MergePolicy.OneMerge;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.Directory;
import org.apache.lucene.tests.index.BaseMergePolicyTestCase;

/** Lucene's own tests of merge policies, and tests on real indexes. */
public class LsmithMergePolicyTest extends BaseMergePolicyTestCase {
    /**
     * Lucene's simulations do not tell merges where their output is, so no history is written.
     * These policies do without.
     */
    private static final List<String> SPECS =
            List.of(LsmithMergePolicy.POLICY_USUAL, "tiered(ratio=4)", "tiered(ratio=8)");

    private static LsmithMergePolicy policy(String spec) {
        LsmithMergePolicy policy = new LsmithMergePolicy();
        policy.setPolicy(spec);
        return policy;
    }

    @Override
    protected MergePolicy mergePolicy() {
        return policy(SPECS.get(random().nextInt(SPECS.size())));
    }

    /** No merge is left over: another look finds none. */
    @Override
    protected void assertSegmentInfos(MergePolicy policy, SegmentInfos infos) throws IOException {
        MergePolicy.MergeContext context = new MockMergeContext(SegmentCommitInfo::getDelCount);
        assertNull(policy.findMerges(MergeTrigger.EXPLICIT, infos, context));
        long bytes = 0;
        int deleted = 0;
        int documents = 0;
        for (SegmentCommitInfo info : infos) {
            bytes += info.sizeInBytes();
            deleted += info.getDelCount();
            documents += info.info.maxDoc();
        }
        long largest = (long) (((LsmithMergePolicy) policy).getMaxMergedSegmentMB() * 1024 * 1024);
        long settled = 2 * bytes / largest + 1;
        assertTrue(infos.size() + " segments", infos.size() <= settled + 4 * 14);
        assertTrue(deleted + " of " + documents, deleted <= 0.2 * documents);
    }

    @Override
    protected void assertMerge(MergePolicy policy, MergeSpecification merges) throws IOException {
        LsmithMergePolicy lsmith = (LsmithMergePolicy) policy;
        assertTrue(merges.merges.size() <= lsmith.getMaxMergesAtOnce());
        for (OneMerge merge : merges.merges) {
            double live = 0;
            for (SegmentCommitInfo info : merge.segments) {
                double share = 1 - (double) info.getDelCount() / info.info.maxDoc();
                live += info.sizeInBytes() * share;
            }
            boolean isAlone = merge.segments.size() == 1 && merge.segments.get(0).getDelCount() > 0;
            assertTrue(isAlone || merge.segments.size() > 1);
            assertTrue(isAlone || live <= lsmith.getMaxMergedSegmentMB() * 1024 * 1024);
        }
    }

    /** The goal of this policy, in Lucene's simulation of updates. */
    public void testWritesAQuarterLessThanTheDefaultWithFewerSegments() throws IOException {
        SimulatedIndex.Costs theirs =
                MeasureSimulations.updates(MeasureSimulations.policy("tiered"), 1_000_000, 2500);
        SimulatedIndex.Costs ours =
                MeasureSimulations.updates(new LsmithMergePolicy(), 1_000_000, 2500);
        assertTrue(ours.written() + " beside " + theirs.written(),
                ours.written() <= 0.75 * theirs.written());
        assertTrue(ours.meanSegments() <= theirs.meanSegments());
    }

    public void testPoliciesThatNeedMoreThanSegmentsAreRefused() {
        for (String spec : List.of("leveled", "auto(price=reads)", "fifo", "jungle", "sweep")) {
            LsmithException error = expectThrows(LsmithException.class, () -> policy(spec));
            assertTrue(error.getMessage(), error.getMessage().contains("merges whole runs"));
        }
        LsmithMergePolicy policy = new LsmithMergePolicy();
        expectThrows(LsmithException.class, () -> policy.setPolicy("tierd"));
        assertEquals(LsmithMergePolicy.POLICY_USUAL, policy.getPolicy());
    }

    public void testSettingsOutOfRangeAreRefused() {
        LsmithMergePolicy policy = new LsmithMergePolicy();
        expectThrows(IllegalArgumentException.class, () -> policy.setMaxMergedSegmentMB(0));
        expectThrows(IllegalArgumentException.class, () -> policy.setMaxMergesAtOnce(0));
        expectThrows(IllegalArgumentException.class, () -> policy.setDeletesPctAllowed(4));
        expectThrows(IllegalArgumentException.class, () -> policy.setFullFlushMergeMB(-1));
        expectThrows(
                IllegalArgumentException.class,
                () -> policy.setForceMergeDeletesPctAllowed(Double.NaN));
    }

    private static void add(IndexWriter writer, int from, int end) throws IOException {
        for (int number = from; number < end; number++) {
            Document document = new Document();
            document.add(new StringField("id", Integer.toString(number), Field.Store.YES));
            writer.updateDocument(new Term("id", Integer.toString(number)), document);
        }
        writer.flush();
    }

    private static IndexWriterConfig config(String spec) {
        IndexWriterConfig config = new IndexWriterConfig(null);
        return config.setMergePolicy(policy(spec)).setMergeScheduler(new SerialMergeScheduler());
    }

    /** Levels and flushes are part of the index: a new policy object goes on where one stopped. */
    public void testHistoryOfSegmentsSurvivesReopening() throws IOException {
        try (Directory directory = newDirectory()) {
            for (int round = 0; round < 4; round++) {
                try (IndexWriter writer = new IndexWriter(directory, config("tiered(ratio=2)"))) {
                    add(writer, round * 10, round * 10 + 10);
                }
            }
            SegmentInfos infos = SegmentInfos.readLatestCommit(directory);
            assertEquals(1, infos.size());
            var diagnostics = infos.info(0).info.getDiagnostics();
            assertEquals("2", diagnostics.get(Segments.LEVEL));
            assertEquals("4", diagnostics.get(Segments.FLUSHES));
        }
    }

    public void testForcedMergesReachTheirCountAndDropDeletes() throws IOException {
        try (Directory directory = newDirectory();
                IndexWriter writer = new IndexWriter(directory, config("none"))) {
            for (int round = 0; round < 9; round++) {
                add(writer, round * 10, round * 10 + 10);
            }
            add(writer, 0, 5);
            writer.forceMergeDeletes();
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                assertEquals(0, reader.numDeletedDocs());
                assertEquals(10, reader.leaves().size());
            }
            add(writer, 5, 15);
            for (int count : new int[] {7, 3, 2, 1}) {
                writer.forceMerge(count);
                try (DirectoryReader reader = DirectoryReader.open(writer)) {
                    assertEquals(count, reader.leaves().size());
                    assertEquals(90, reader.numDocs());
                }
            }
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                assertEquals(0, reader.numDeletedDocs());
            }
        }
    }
}
