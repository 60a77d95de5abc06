package lsmith.solr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.solr.client.solrj.SolrClient;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.SolrServerException;
import org.apache.solr.client.solrj.embedded.EmbeddedSolrServer;
import org.apache.solr.client.solrj.request.UpdateRequest;
import org.apache.solr.common.SolrDocument;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.core.CoreContainer.CoreLoadFailure;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Promised: a core whose configuration names the factory merges as it says, and loses nothing. */
class LsmithMergePolicyFactoryTest {
    private static final int IDS = 700;

    @TempDir Path folder;

    private final Random random = new Random(20261129);

    /** What the index must have: the round of each document that was written last. */
    private final Map<String, Integer> expected = new TreeMap<>();

    private static String text(int round) {
        return "round" + round + " word" + round % 7;
    }

    /** Writes, overwrites and deletes documents, by id and by query, in some flushes. */
    private void change(SolrClient solr, int round) throws SolrServerException, IOException {
        int count = SolrHome.BUFFERED / 2 + random.nextInt(3 * SolrHome.BUFFERED);
        for (int index = 0; index < count; index++) {
            String id = "id" + random.nextInt(IDS);
            if (random.nextInt(8) == 0) {
                solr.deleteById(id);
                expected.remove(id);
                continue;
            }
            SolrInputDocument document = new SolrInputDocument();
            document.addField("id", id);
            document.addField("round", round);
            document.addField("text", text(round));
            solr.add(document);
            expected.put(id, round);
        }
        if (round % 10 == 9) {
            int gone = random.nextInt(round);
            solr.deleteByQuery("round:" + gone);
            expected.values().removeIf(value -> value == gone);
        }
        // Most commits are soft, as in a Solr that shows documents soon: they write no commit point.
        solr.commit(true, true, round % 8 != 7);
    }

    /** Reads every document, and as many as a query for a word finds. */
    private void compare(SolrClient solr) throws SolrServerException, IOException {
        Map<String, Integer> found = new TreeMap<>();
        SolrQuery all = new SolrQuery("*:*").setRows(2 * IDS);
        for (SolrDocument document : solr.query(all).getResults()) {
            int round = (Integer) document.get("round");
            assertEquals(text(round), document.get("text"));
            assertNull(found.put((String) document.get("id"), round), "twice: " + document);
        }
        assertEquals(expected, found);
        long due = expected.values().stream().filter(round -> round % 7 == 3).count();
        SolrQuery some = new SolrQuery("text:word3").setRows(0);
        assertEquals(due, solr.query(some).getResults().getNumFound());
    }

    /** Returns how many segments were merged, all of them by this policy. */
    private static int mergedByPolicy(SegmentInfos infos) {
        int merged = 0;
        for (SegmentCommitInfo info : infos) {
            Map<String, String> diagnostics = info.info.getDiagnostics();
            if ("merge".equals(diagnostics.get("source"))) {
                assertTrue(diagnostics.containsKey("lsmith.flushes"), diagnostics.toString());
                merged++;
            }
        }
        return merged;
    }

    private static int flushesMerged(SegmentInfos infos) {
        int flushes = 0;
        for (SegmentCommitInfo info : infos) {
            String text = info.info.getDiagnostics().get("lsmith.flushes");
            flushes += text == null ? 0 : Integer.parseInt(text);
        }
        return flushes;
    }

    @Test
    void documentsSurviveMergesRestartsAndOtherPolicies() throws Exception {
        SolrHome home = new SolrHome(folder);
        List<String> policies = List.of("tiered(ratio=3)", "bigtable(k=4)", "constant(k=3)");
        int round = 0;
        for (String policy : policies) {
            home.configure("""
                    <str name="policy">%s</str>
                    <double name="maxMergedSegmentMB">64</double>
                    <int name="maxMergesAtOnce">2</int>
                    """.formatted(policy));
            try (EmbeddedSolrServer solr = home.start()) {
                compare(solr);
                String said = SolrHome.policy(solr);
                assertTrue(said.contains("policy=" + policy + ", maxMergedSegmentMB=64.0,"
                        + " maxMergesAtOnce=2,"), said);
                for (int end = round + 40; round < end; round++) {
                    change(solr, round);
                    if (round % 5 == 0) {
                        compare(solr);
                    }
                }
                solr.commit();
                compare(solr);
                SegmentInfos infos = SolrHome.segments(solr);
                assertTrue(mergedByPolicy(infos) > 0, "no segment was merged");
                assertTrue(flushesMerged(infos) >= 20, flushesMerged(infos) + " flushes merged");
                assertTrue(infos.size() <= 12, infos.size() + " segments");
            }
        }
    }

    @Test
    void reloadedCoreMergesByTheNewPolicy() throws Exception {
        SolrHome home = new SolrHome(folder);
        home.configure("<str name=\"policy\">none</str>");
        try (EmbeddedSolrServer solr = home.start()) {
            for (int round = 0; round < 12; round++) {
                change(solr, round);
            }
            solr.commit();
            int before = SolrHome.segments(solr).size();
            assertTrue(before >= 12, before + " segments, though nothing merges");
            home.configure("<str name=\"policy\">constant(k=2)</str>");
            solr.getCoreContainer().reload(SolrHome.CORE);
            for (int round = 12; round < 24; round++) {
                change(solr, round);
            }
            solr.commit();
            SegmentInfos infos = SolrHome.segments(solr);
            assertTrue(infos.size() < before, infos.size() + " segments");
            assertTrue(mergedByPolicy(infos) > 0, "no segment was merged");
            compare(solr);
        }
    }

    @Test
    void optimizeAndExpungeDeletesDoWhatSolrMeans() throws Exception {
        SolrHome home = new SolrHome(folder);
        home.configure("<str name=\"policy\">none</str>");
        try (EmbeddedSolrServer solr = home.start()) {
            for (int round = 0; round < 12; round++) {
                change(solr, round);
            }
            UpdateRequest expunge = new UpdateRequest();
            expunge.setAction(UpdateRequest.ACTION.COMMIT, true, true);
            expunge.setParam("expungeDeletes", "true");
            expunge.process(solr);
            for (SegmentCommitInfo info : SolrHome.segments(solr)) {
                assertTrue(info.getDelCount() <= 0.1 * info.info.maxDoc(), info.toString());
            }
            compare(solr);
            for (int count : new int[] {4, 1}) {
                solr.optimize(true, true, count);
                assertEquals(count, SolrHome.segments(solr).size());
                compare(solr);
            }
        }
    }

    /** Starts a core with these settings, which must not load, and returns what Solr says. */
    private static String refusal(SolrHome home, String settings) throws IOException {
        home.configure(settings);
        try (EmbeddedSolrServer solr = home.start()) {
            CoreLoadFailure failure =
                    solr.getCoreContainer().getCoreInitFailures().get(SolrHome.CORE);
            assertNotNull(failure, "the core has loaded with " + settings);
            StringBuilder said = new StringBuilder();
            for (Throwable error = failure.exception; error != null; error = error.getCause()) {
                said.append(error.getMessage()).append('\n');
            }
            return said.toString();
        }
    }

    @Test
    void wrongSettingsKeepTheCoreFromLoadingAndAreNamed() throws Exception {
        SolrHome home = new SolrHome(folder);
        Map<String, List<String>> refused = Map.of(
                "<str name=\"policy\">tierd(ratio=4)</str>",
                List.of("policy: ", "tierd"),
                "<str name=\"policy\">leveled</str>",
                List.of("policy: ", "merges whole runs"),
                "<int name=\"policy\">4</int>",
                List.of("policy: expected <str>, found Integer 4"),
                "<int name=\"maxMergesAtOnce\">0</int>",
                List.of("maxMergesAtOnce: expected 1 merge or more, found 0"),
                "<double name=\"maxMergesAtOnce\">2.5</double>",
                List.of("maxMergesAtOnce: expected <int>, found Double 2.5"),
                "<str name=\"maxMergedSegmentMB\">5 GB</str>",
                List.of("maxMergedSegmentMB: expected <double>, found String 5 GB"),
                "<double name=\"maxMergedSegmentMB\">-1</double>",
                List.of("maxMergedSegmentMB: expected a size above 0 MB, found -1.0"),
                "<int name=\"segmentsPerTier\">10</int>",
                List.of("segmentsPerTier: there is no such setting; expected policy, "));
        for (Map.Entry<String, List<String>> entry : refused.entrySet()) {
            String said = refusal(home, entry.getKey());
            for (String part : entry.getValue()) {
                assertTrue(said.contains(part), entry.getKey() + " is refused with: " + said);
            }
        }
        home.configure("<double name=\"noCFSRatio\">1</double>"
                + "<int name=\"maxCFSSegmentSizeMB\">8</int>"
                + "<int name=\"deletesPctAllowed\">30</int>"
                + "<float name=\"forceMergeDeletesPctAllowed\">5</float>"
                + "<long name=\"fullFlushMergeMB\">1</long>");
        try (EmbeddedSolrServer solr = home.start()) {
            assertEquals(0, solr.query(new SolrQuery("*:*")).getResults().getNumFound());
            String said = SolrHome.policy(solr);
            assertTrue(said.contains("deletesPctAllowed=30.0, forceMergeDeletesPctAllowed=5.0"),
                    said);
        }
    }
}
