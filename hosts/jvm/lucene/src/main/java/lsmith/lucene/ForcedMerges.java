package lsmith.lucene;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import lsmith.lucene.Segments.Segment;

/** Which neighbours to merge when the user asks for it. */
final class ForcedMerges {
    private ForcedMerges() {}

    /**
     * Returns the merges that leave at most {@code countMax} segments and write least.
     *
     * <p>The segments are cut into {@code countMax} rows of neighbours. A row of one segment is not
     * written. {@code least[rows][end]} is what the first {@code end} segments cost at least in
     * {@code rows} rows.
     */
    static List<List<Segment>> into(int countMax, List<Segment> segments) {
        int count = segments.size();
        if (count <= countMax) {
            return List.of();
        }
        double[] sums = new double[count + 1];
        for (int index = 0; index < count; index++) {
            // A byte for the segment itself, so that empty ones are not merged for nothing.
            sums[index + 1] = sums[index] + segments.get(index).bytes + 1;
        }
        double[] least = new double[count + 1];
        Arrays.fill(least, Double.POSITIVE_INFINITY);
        least[0] = 0;
        int[][] starts = new int[countMax][count + 1];
        for (int row = 0; row < countMax; row++) {
            double[] next = new double[count + 1];
            Arrays.fill(next, Double.POSITIVE_INFINITY);
            for (int end = row + 1; end <= count; end++) {
                for (int start = row; start < end; start++) {
                    double cost = least[start] + (end - start > 1 ? sums[end] - sums[start] : 0);
                    if (cost < next[end]) {
                        next[end] = cost;
                        starts[row][end] = start;
                    }
                }
            }
            least = next;
        }
        List<List<Segment>> merges = new ArrayList<>();
        int end = count;
        for (int row = countMax - 1; row >= 0; row--) {
            int start = starts[row][end];
            if (end - start > 1) {
                merges.add(segments.subList(start, end));
            }
            end = start;
        }
        Collections.reverse(merges);
        return merges;
    }

    /**
     * Returns the merges that write anew all segments of which more than the share {@code allowed}
     * is deleted. Neighbours go together, as long as the output has at most {@code largest} bytes.
     */
    static List<List<Segment>> withoutDeletes(
            double allowed, long largest, List<Segment> segments) {
        List<List<Segment>> merges = new ArrayList<>();
        List<Segment> row = new ArrayList<>();
        long bytes = 0;
        for (Segment segment : segments) {
            boolean isDue = !segment.isBusy && segment.deletedShare() > allowed;
            if (!row.isEmpty() && (!isDue || bytes + segment.bytes > largest)) {
                merges.add(row);
                row = new ArrayList<>();
                bytes = 0;
            }
            if (isDue) {
                row.add(segment);
                bytes += segment.bytes;
            }
        }
        if (!row.isEmpty()) {
            merges.add(row);
        }
        return merges;
    }
}
