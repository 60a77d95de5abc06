package lsmith.lucene;

import java.io.IOException;
import java.util.Locale;
import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogByteSizeMergePolicy;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TieredMergePolicy;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FilterDirectory;
import org.apache.lucene.store.FilterIndexOutput;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexOutput;

/**
 * Prints what merge policies cost on a real index in memory: documents of words, of which most
 * replace or delete older ones. The arguments are policies, as for {@link MeasureSimulations}.
 */
public final class MeasureIndex {
    private static final int FLUSHES = 600;
    private static final int DOCUMENTS = 40_000;
    private static final int PER_FLUSH = 300;
    private static final int WORDS = 5000;
    private static final int QUERIES = 3000;
    /** In proportion to the index, as 5 GB are to an index of a few of them. */
    private static final double LARGEST_MB = 16;

    private MeasureIndex() {}

    /** Counts the bytes of all files that flushes and merges create. */
    private static final class Counting extends FilterDirectory {
        private long flushed;
        private long merged;

        Counting(Directory directory) {
            super(directory);
        }

        @Override
        public IndexOutput createOutput(String name, IOContext context) throws IOException {
            IndexOutput output = super.createOutput(name, context);
            boolean isMerge = context.context == IOContext.Context.MERGE;
            return new FilterIndexOutput("counting", name, output) {
                @Override
                public void close() throws IOException {
                    long bytes = getFilePointer();
                    super.close();
                    flushed += isMerge ? 0 : bytes;
                    merged += isMerge ? bytes : 0;
                }
            };
        }
    }

    private static MergePolicy bounded(String name) {
        MergePolicy policy = MeasureSimulations.policy(name);
        if (policy instanceof TieredMergePolicy tiered) {
            // Its floor is in the same proportion.
            tiered.setMaxMergedSegmentMB(LARGEST_MB).setFloorSegmentMB(LARGEST_MB * 2 / 5120);
        } else if (policy instanceof LogByteSizeMergePolicy log) {
            log.setMaxMergeMB(LARGEST_MB * 2048 / 5120);
            log.setMinMergeMB(LARGEST_MB * 1.6 / 5120);
        } else if (policy instanceof LsmithMergePolicy lsmith) {
            lsmith.setMaxMergedSegmentMB(LARGEST_MB);
            lsmith.setFullFlushMergeMB(LARGEST_MB * 2 / 5120);
        }
        return policy;
    }

    private static Document document(int id, Random random) {
        Document document = new Document();
        document.add(new StringField("id", Integer.toString(id), Field.Store.YES));
        StringBuilder text = new StringBuilder();
        for (int count = 0; count < 60; count++) {
            // Few words are frequent.
            text.append("word").append((int) (WORDS * Math.pow(random.nextDouble(), 3)));
            text.append(' ');
        }
        document.add(new TextField("text", text.toString(), Field.Store.YES));
        return document;
    }

    private static void run(String name) throws IOException {
        Random random = new Random(7);
        Counting directory = new Counting(new ByteBuffersDirectory());
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        config.setMergePolicy(bounded(name)).setMergeScheduler(new SerialMergeScheduler());
        config.setRAMBufferSizeMB(256);
        long segments = 0;
        int most = 0;
        long longest = 0;
        double deleted = 0;
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            for (int flush = 0; flush < FLUSHES; flush++) {
                int count = PER_FLUSH / 2 + random.nextInt(PER_FLUSH);
                for (int index = 0; index < count; index++) {
                    int id = random.nextInt(DOCUMENTS);
                    if (random.nextInt(10) == 0) {
                        writer.deleteDocuments(new Term("id", Integer.toString(id)));
                    } else {
                        writer.updateDocument(
                                new Term("id", Integer.toString(id)), document(id, random));
                    }
                }
                long before = directory.merged;
                writer.commit();
                longest = Math.max(longest, directory.merged - before);
                SegmentInfos infos = SegmentInfos.readLatestCommit(directory);
                deleted += deletedShare(infos);
                int now = infos.size();
                segments += now;
                most = Math.max(most, now);
            }
        }
        System.out.printf(Locale.ROOT, "%-40s %7.3f %7.1f %5d %8.1f %7.3f %8.1f%n", name,
                (double) (directory.flushed + directory.merged) / directory.flushed,
                (double) segments / FLUSHES, most, longest / 1048576.0,
                deleted / FLUSHES, queryMicros(directory));
    }

    private static double deletedShare(SegmentInfos infos) {
        long deleted = 0;
        long documents = 0;
        for (SegmentCommitInfo info : infos) {
            deleted += info.getDelCount();
            documents += info.info.maxDoc();
        }
        return (double) deleted / documents;
    }

    /** Returns the mean time of a query for one word in microseconds, after a round to warm up. */
    private static double queryMicros(Directory directory) throws IOException {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            double micros = 0;
            for (int round = 0; round < 3; round++) {
                Random random = new Random(round);
                long begin = System.nanoTime();
                for (int query = 0; query < QUERIES; query++) {
                    String word = "word" + random.nextInt(WORDS);
                    searcher.search(new TermQuery(new Term("text", word)), 10);
                }
                micros = (System.nanoTime() - begin) / 1e3 / QUERIES;
            }
            return micros;
        }
    }

    /** Prints a table. */
    public static void main(String[] policies) throws IOException {
        System.out.printf("%-40s %7s %7s %5s %8s %7s %8s%n", "policy", "written", "mean", "most",
                "merged", "deleted", "query us");
        for (String policy : policies) {
            run(policy);
        }
    }
}
