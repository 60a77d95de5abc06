package lsmith.lucene;

import java.util.List;
import java.util.Map;
import org.apache.lucene.index.MergePolicy.OneMerge;
import org.apache.lucene.index.SegmentCommitInfo;

/** A merge that writes the history of its inputs into the diagnostics of its output. */
final class NotedMerge extends OneMerge {
    private final Map<String, String> history;

    NotedMerge(List<SegmentCommitInfo> segments, Map<String, String> history) {
        super(segments);
        this.history = history;
    }

    @Override
    public void setMergeInfo(SegmentCommitInfo info) {
        super.setMergeInfo(info);
        if (info != null) {
            info.info.addDiagnostics(history);
        }
    }
}
