package lsmith.solr;

import java.util.TreeSet;
import lsmith.LsmithException;
import lsmith.lucene.LsmithMergePolicy;
import org.apache.lucene.index.MergePolicy;
import org.apache.solr.common.SolrException;
import org.apache.solr.core.SolrResourceLoader;
import org.apache.solr.index.MergePolicyFactory;
import org.apache.solr.index.MergePolicyFactoryArgs;
import org.apache.solr.schema.IndexSchema;

/**
 * Makes the {@link LsmithMergePolicy} of a Solr core. {@code solrconfig.xml} names it:
 *
 * <pre>{@code
 * <indexConfig>
 *   <mergePolicyFactory class="lsmith.solr.LsmithMergePolicyFactory">
 *     <str name="policy">tiered(ratio=14)</str>
 *     <double name="maxMergedSegmentMB">5120</double>
 *     <int name="maxMergesAtOnce">4</int>
 *   </mergePolicyFactory>
 * </indexConfig>
 * }</pre>
 *
 * <p>The names of the settings are those of the setters of {@link LsmithMergePolicy}. A setting
 * that is unknown, or has a wrong type or value, keeps the core from loading.
 */
public class LsmithMergePolicyFactory extends MergePolicyFactory {
    private static final String NAMES = "policy, maxMergedSegmentMB, maxMergesAtOnce,"
            + " deletesPctAllowed, forceMergeDeletesPctAllowed, fullFlushMergeMB, noCFSRatio"
            + " or maxCFSSegmentSizeMB";

    /** Called by Solr. */
    public LsmithMergePolicyFactory(
            SolrResourceLoader loader, MergePolicyFactoryArgs args, IndexSchema schema) {
        super(loader, args, schema);
    }

    /**
     * Returns a policy with the settings of {@code solrconfig.xml}.
     *
     * @throws SolrException if a setting is wrong: it says which one, and what was expected
     */
    @Override
    public MergePolicy getMergePolicy() {
        LsmithMergePolicy policy = new LsmithMergePolicy();
        // In the order of names, so that the first wrong one is always the same.
        for (String name : new TreeSet<>(args.keys())) {
            try {
                set(policy, name, args.get(name));
            } catch (IllegalArgumentException | LsmithException error) {
                throw new SolrException(SolrException.ErrorCode.SERVER_ERROR,
                        "mergePolicyFactory " + getClass().getName() + ", " + name + ": "
                                + error.getMessage(), error);
            }
        }
        return policy;
    }

    private static void set(LsmithMergePolicy policy, String name, Object value) {
        switch (name) {
            case "policy" -> policy.setPolicy(text(value));
            case "maxMergedSegmentMB" -> policy.setMaxMergedSegmentMB(number(value));
            case "maxMergesAtOnce" -> policy.setMaxMergesAtOnce(count(value));
            case "deletesPctAllowed" -> policy.setDeletesPctAllowed(number(value));
            case "forceMergeDeletesPctAllowed" ->
                policy.setForceMergeDeletesPctAllowed(number(value));
            case "fullFlushMergeMB" -> policy.setFullFlushMergeMB(number(value));
            case "noCFSRatio" -> policy.setNoCFSRatio(number(value));
            case "maxCFSSegmentSizeMB" -> policy.setMaxCFSSegmentSizeMB(number(value));
            default -> throw new IllegalArgumentException(
                    "there is no such setting; expected " + NAMES);
        }
    }

    private static String text(Object value) {
        if (value instanceof String text) {
            return text;
        }
        throw wrong("<str>", value);
    }

    private static double number(Object value) {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        throw wrong("<double>", value);
    }

    private static int count(Object value) {
        if (value instanceof Integer count) {
            return count;
        }
        throw wrong("<int>", value);
    }

    private static IllegalArgumentException wrong(String tag, Object value) {
        String type = value == null ? "nothing" : value.getClass().getSimpleName() + " " + value;
        return new IllegalArgumentException("expected " + tag + ", found " + type);
    }
}
