package lsmith.lucene;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import lsmith.lucene.SimulatedIndex.Costs;
import org.apache.lucene.index.LogByteSizeMergePolicy;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.index.TieredMergePolicy;

/**
 * Prints what merge policies cost in simulations of Lucene.
 *
 * <p>Arguments are names of simulations (append, updates, small, large, all) and policies: {@code
 * tiered}, {@code log}, or specs of lsmith. Behind {@code tiered} and specs, {@code @50} allows as
 * many percent of deleted documents.
 */
public final class MeasureSimulations {
    private static final long DOCUMENT_BYTES = 5 * 1024;
    private static final long SEED = 20261128;

    private MeasureSimulations() {}

    static MergePolicy policy(String text) {
        int at = text.indexOf('@');
        String name = at < 0 ? text : text.substring(0, at);
        double deletes = at < 0 ? 20 : Double.parseDouble(text.substring(at + 1));
        if (name.equals("tiered")) {
            return new TieredMergePolicy().setDeletesPctAllowed(deletes);
        }
        if (name.startsWith("tiered:")) {
            int count = Integer.parseInt(name.substring(7));
            return new TieredMergePolicy().setSegmentsPerTier(count).setMaxMergeAtOnce(count);
        }
        if (name.equals("log")) {
            return new LogByteSizeMergePolicy();
        }
        LsmithMergePolicy policy = new LsmithMergePolicy();
        policy.setPolicy(name);
        policy.setDeletesPctAllowed(deletes);
        return policy;
    }

    /** Appends documents in flushes of one to {@code most} of them. */
    static Costs append(MergePolicy policy, int documents, int most) throws IOException {
        Random random = new Random(SEED);
        SimulatedIndex index = new SimulatedIndex(policy);
        for (int count = 0; count < documents; ) {
            int flushed = 1 + random.nextInt(most);
            count += flushed;
            index.flush(flushed, flushed * DOCUMENT_BYTES);
        }
        return index.costs();
    }

    /** Appends as many documents in flushes of one size. */
    static Costs even(MergePolicy policy, int flushes, long bytes) throws IOException {
        SimulatedIndex index = new SimulatedIndex(policy);
        for (int count = 0; count < flushes; count++) {
            index.flush((int) (bytes / DOCUMENT_BYTES), bytes);
        }
        return index.costs();
    }

    /** Adds and updates, more and more of the latter, until there are as many documents. */
    static Costs updates(MergePolicy policy, int documents, int most) throws IOException {
        Random random = new Random(SEED);
        SimulatedIndex index = new SimulatedIndex(policy);
        for (int count = 0; count < documents; ) {
            int least = random.nextInt(10) == 0 ? 1 : most / 2;
            int flushed = least + random.nextInt(most - least + 1);
            int deleted = (int) (flushed * 0.9 * count / documents);
            count += flushed - deleted;
            index.delete(deleted);
            index.flush(flushed, flushed * DOCUMENT_BYTES);
        }
        return index.costs();
    }

    private static Costs run(String simulation, MergePolicy policy) throws IOException {
        return switch (simulation) {
            case "append" -> append(policy, 100_000_000, 10_000);
            case "updates" -> updates(policy, 1_000_000, 2500);
            case "updates10" -> updates(policy, 10_000_000, 2500);
            case "large" -> append(policy, 25_000_000, 50_000);
            case "even" -> even(policy, 555, 300 << 20);
            default -> throw new IllegalArgumentException("no simulation " + simulation);
        };
    }

    /** Prints a table for each simulation. */
    public static void main(String[] arguments) throws IOException {
        List<String> simulations = List.of(arguments[0].split(","));
        for (String simulation : simulations) {
            System.out.printf("%-10s %-55s %7s %7s %5s %8s %7s %7s %6s %6s %6s%n", simulation, "policy",
                    "written", "mean", "most", "longest", "deleted",
                    "alone", "merges", "alone", "s");
            for (int index = 1; index < arguments.length; index++) {
                long begin = System.nanoTime();
                Costs costs = run(simulation, policy(arguments[index]));
                System.out.printf(Locale.ROOT, "%-10s %-55s %7.3f %7.1f %5d %8d %7.3f %7.3f %6d %6d %6.1f%n",
                        simulation, arguments[index], costs.written(), costs.meanSegments(),
                        costs.most, costs.longest >> 20, costs.meanDeletedShare(),
                        (double) costs.rewritten / costs.flushed, costs.merges, costs.rewrites,
                        (System.nanoTime() - begin) / 1e9);
            }
        }
    }
}
