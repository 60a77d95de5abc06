package lsmith.solr;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.lucene.index.IndexCommit;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.SegmentInfos;
import org.apache.solr.client.solrj.embedded.EmbeddedSolrServer;
import org.apache.solr.core.SolrCore;
import org.apache.solr.util.RefCounted;

/** A folder with one core, {@value #CORE}, as a person would set it up. */
final class SolrHome {
    static final String CORE = "shop";

    private static final String SCHEMA = """
            <schema name="shop" version="1.7">
              <fieldType name="string" class="solr.StrField"/>
              <fieldType name="int" class="solr.IntPointField"/>
              <fieldType name="text" class="solr.TextField">
                <analyzer><tokenizer name="standard"/></analyzer>
              </fieldType>
              <field name="id" type="string" indexed="true" stored="true" required="true"/>
              <field name="_version_" type="plong" indexed="false" stored="false" docValues="true"/>
              <fieldType name="plong" class="solr.LongPointField"/>
              <field name="round" type="int" indexed="true" stored="true" docValues="true"/>
              <field name="text" type="text" indexed="true" stored="true"/>
              <uniqueKey>id</uniqueKey>
            </schema>
            """;

    private static final String CONFIG = """
            <config>
              <luceneMatchVersion>9.12</luceneMatchVersion>
              <indexConfig>
                <maxBufferedDocs>%d</maxBufferedDocs>
                <mergePolicyFactory class="lsmith.solr.LsmithMergePolicyFactory">
                  %s
                </mergePolicyFactory>
              </indexConfig>
              <updateHandler class="solr.DirectUpdateHandler2">
                <updateLog/>
              </updateHandler>
              <requestHandler name="/select" class="solr.SearchHandler"/>
            </config>
            """;

    /** Solr writes a segment after as many documents, or at a commit. */
    static final int BUFFERED = 20;

    private final Path folder;

    SolrHome(Path folder) throws IOException {
        this.folder = folder;
        Path conf = Files.createDirectories(folder.resolve(CORE).resolve("conf"));
        Files.writeString(folder.resolve("solr.xml"), "<solr/>\n");
        Files.writeString(conf.resolve("schema.xml"), SCHEMA);
        Files.writeString(folder.resolve(CORE).resolve("core.properties"), "name=" + CORE + "\n");
    }

    /** Writes {@code solrconfig.xml} with these settings of the factory. */
    void configure(String settings) throws IOException {
        String text = String.format(Locale.ROOT, CONFIG, BUFFERED, settings);
        Files.writeString(folder.resolve(CORE).resolve("conf").resolve("solrconfig.xml"), text);
    }

    /** Starts Solr in this process. Its end is the end of the server. */
    EmbeddedSolrServer start() {
        return new EmbeddedSolrServer(folder, CORE);
    }

    /** Returns the merge policy that writes the core, as text. */
    static String policy(EmbeddedSolrServer solr) throws IOException {
        try (SolrCore core = solr.getCoreContainer().getCore(CORE)) {
            RefCounted<IndexWriter> writer = core.getSolrCoreState().getIndexWriter(core);
            try {
                return writer.get().getConfig().getMergePolicy().toString();
            } finally {
                writer.decref();
            }
        }
    }

    /** Returns the segments of the last commit. */
    static SegmentInfos segments(EmbeddedSolrServer solr) throws IOException {
        try (SolrCore core = solr.getCoreContainer().getCore(CORE)) {
            IndexCommit commit = core.getDeletionPolicy().getLatestCommit();
            return SegmentInfos.readCommit(commit.getDirectory(), commit.getSegmentsFileName());
        }
    }
}
