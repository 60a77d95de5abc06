package lsmith.lucene;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import lsmith.Looks;
import lsmith.LsmithException;
import org.apache.lucene.index.MergePolicy.MergeSpecification;
import org.apache.lucene.index.MergePolicy.OneMerge;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.tests.util.LuceneTestCase;

/** The same sizes in, the same picks out, through the diagnostics of segments. */
public class ConformanceTest extends LuceneTestCase {
    public void testPicksAreThePicksOfTheSimulation() throws IOException {
        LsmithMergePolicy policy = new LsmithMergePolicy();
        policy.setMaxMergesAtOnce(1);
        for (Looks.Look look : Looks.read()) {
            policy.setPolicy(look.policy());
            SimulatedIndex index = index(look);
            SegmentInfos infos = index.infos();
            MergeSpecification merges =
                    policy.findMerges(MergeTrigger.EXPLICIT, infos, SimulatedIndex.context());
            assertEquals(look.toString(), look.pick(), words(infos, merges));
        }
    }

    /** Each segment is one flush, and the oldest all others. The newest has the notes. */
    private static SimulatedIndex index(Looks.Look look) throws IOException {
        SimulatedIndex index = new SimulatedIndex(null);
        int count = look.runs().size();
        for (int run = count - 1; run >= 0; run--) {
            boolean isOldest = run == count - 1;
            Map<String, String> history = new HashMap<>();
            history.put(Segments.LEVEL, Integer.toString(look.runs().get(run).level()));
            history.put(Segments.FLUSHES, Long.toString(isOldest ? look.flushes() - count + 1 : 1));
            history.put(Segments.FLUSHED, Long.toString(isOldest ? look.flushedBytes() : 0));
            if (run == 0) {
                look.notes().forEach((name, note) -> history.put(Segments.NOTE + name, note));
            }
            index.add(look.runs().get(run).bytes(), history);
        }
        return index;
    }

    private static String words(SegmentInfos infos, MergeSpecification merges) throws IOException {
        if (merges == null) {
            return "none";
        }
        OneMerge merge = merges.merges.get(0);
        List<SegmentCommitInfo> inputs = merge.segments;
        int newest = infos.asList().indexOf(inputs.get(inputs.size() - 1));
        int from = infos.size() - 1 - newest;
        // Any segment of the index takes what the merge says of its output.
        SegmentCommitInfo output = infos.info(0);
        merge.setMergeInfo(output);
        return from + ".." + (from + inputs.size()) + " "
                + output.info.getDiagnostics().get(Segments.LEVEL);
    }

    public void testPoliciesThatNeedMoreAreRefused() throws IOException {
        LsmithMergePolicy policy = new LsmithMergePolicy();
        Looks.needs().forEach((spec, need) -> {
            if (need.equals("nothing")) {
                policy.setPolicy(spec);
            } else {
                LsmithException error =
                        expectThrows(LsmithException.class, () -> policy.setPolicy(spec));
                assertTrue(error.getMessage(), error.getMessage().endsWith(need));
            }
        });
    }
}
