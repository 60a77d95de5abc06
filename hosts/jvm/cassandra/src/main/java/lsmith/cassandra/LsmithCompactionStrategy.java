package lsmith.cassandra;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import lsmith.LsmithException;
import lsmith.Pick;
import lsmith.Policy;
import lsmith.Runs;
import lsmith.cassandra.Tables.Table;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.NoSpamLogger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A compaction strategy of Cassandra that asks a policy of lsmith, such as {@code tiered(ratio=8)}.
 *
 * <p>An SSTable is a run, and its size is its bytes on disk. Cassandra makes one strategy for each
 * repair state and data directory, so a policy sees the tables of one of them. Tables in a
 * compaction are busy. Cassandra itself merges the tables that the policy picks: each cell has its
 * own timestamp, so any pick keeps all rows. A pick that is no merge of two or more whole
 * neighbours is refused and logged.
 */
public class LsmithCompactionStrategy extends AbstractCompactionStrategy {
    /** The option that names the policy. */
    public static final String POLICY = "policy";

    /** The policy that is asked unless the option names another one. */
    public static final String POLICY_USUAL = "tiered(ratio=4)";

    private static final Logger LOG = LoggerFactory.getLogger(LsmithCompactionStrategy.class);

    /** Merges beyond this many are not counted in estimates. */
    private static final int ESTIMATE_MAX = 32;

    private final Tables tables;

    /** Null if it could not be made on this node, and after the end. */
    private Policy policy;

    /**
     * Called by Cassandra. A policy that this node cannot make is logged, and then this node merges
     * nothing in the background: a node must start whatever the schema says.
     */
    public LsmithCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options) {
        super(cfs, options);
        tables = new Tables(cfs);
        String spec = options.getOrDefault(POLICY, POLICY_USUAL);
        try {
            policy = make(spec);
        } catch (LsmithException error) {
            LOG.error("{} merges nothing until its policy `{}` is replaced: {}", name(), spec,
                    error.getMessage());
        }
    }

    private static Policy make(String spec) {
        Policy made = new Policy(spec);
        try {
            made.requireWholeRuns();
            return made;
        } catch (LsmithException error) {
            made.close();
            throw error;
        }
    }

    /**
     * Called by Cassandra for {@code CREATE TABLE} and {@code ALTER TABLE}. Returns the options
     * that are not known here.
     *
     * @throws ConfigurationException if there is no such policy, or if it needs more than whole
     *     tables by size, age and level; in lsmith's own words
     */
    public static Map<String, String> validateOptions(Map<String, String> options)
            throws ConfigurationException {
        Map<String, String> unknown = AbstractCompactionStrategy.validateOptions(options);
        String spec = unknown.remove(POLICY);
        try {
            make(spec == null ? POLICY_USUAL : spec).close();
        } catch (LsmithException error) {
            throw new ConfigurationException(POLICY + ": " + error.getMessage(), error);
        }
        return unknown;
    }

    @Override
    public synchronized AbstractCompactionTask getNextBackgroundTask(long gcBefore) {
        if (policy == null) {
            return null;
        }
        // Between the look and the transaction another compaction may take a table. Once is worth
        // another look; after that Cassandra asks again when that compaction ends.
        for (int attempt = 0; attempt < 2; attempt++) {
            List<Table> all = tables.look();
            Pick pick = pick(all);
            List<Table> inputs = pick == null
                    ? withTombstones(all, gcBefore)
                    : all.subList(pick.from(), pick.end());
            if (inputs.isEmpty()) {
                return null;
            }
            LifecycleTransaction transaction = begin(inputs.stream().map(Table::reader).toList());
            if (transaction == null) {
                continue;
            }
            if (pick == null) {
                return new LevelTask(cfs, transaction, gcBefore, inputs.get(0).level(), false);
            }
            LOG.debug("{} of {}: {} of {}", pick, name(), policy.spec(), tables.runs(all));
            tables.note(pick);
            int level = Math.min(pick.level(), Tables.LEVEL_MAX);
            return new LevelTask(cfs, transaction, gcBefore, level, false);
        }
        return null;
    }

    private LifecycleTransaction begin(Iterable<SSTableReader> inputs) {
        return cfs.getTracker().tryModify(inputs, OperationType.COMPACTION);
    }

    /** Returns the merge that the policy asks for, or null. */
    private Pick pick(List<Table> all) {
        if (policy == null || all.isEmpty()) {
            return null;
        }
        Runs runs = tables.runs(all);
        try {
            Pick pick = policy.pick(runs);
            if (pick != null && pick.end() - pick.from() < 2) {
                refused("expected a merge of two tables or more, found one of 1");
                return null;
            }
            return pick;
        } catch (RuntimeException error) {
            refused(error.getMessage());
            return null;
        }
    }

    private void refused(String why) {
        NoSpamLogger.log(LOG, NoSpamLogger.Level.WARN, name(), 1, TimeUnit.MINUTES,
                "Nothing is merged in {}, because the plan of `{}` is refused: {}", name(),
                policy.spec(), why);
    }

    private String name() {
        return cfs.getKeyspaceName() + "." + cfs.getTableName();
    }

    /** Returns the largest table of which a compaction alone would drop many tombstones. */
    private List<Table> withTombstones(List<Table> all, long gcBefore) {
        return all.stream()
                .filter(table -> !table.isBusy())
                .filter(table -> worthDroppingTombstones(table.reader(), gcBefore))
                .max(Comparator.comparingLong(Table::bytes))
                .map(List::of)
                .orElse(List.of());
    }

    /** Merges all tables into one, in the level of the oldest. */
    @Override
    public synchronized Collection<AbstractCompactionTask> getMaximalTask(
            long gcBefore, boolean splitOutput) {
        List<Table> all = tables.look();
        LifecycleTransaction transaction =
                all.isEmpty() ? null : begin(all.stream().map(Table::reader).toList());
        if (transaction == null) {
            return null;
        }
        int level = all.get(all.size() - 1).level();
        return List.of(new LevelTask(cfs, transaction, gcBefore, level, splitOutput));
    }

    /** Merges the tables that the user names. Returns null if one of them is in a compaction. */
    @Override
    public synchronized AbstractCompactionTask getUserDefinedTask(
            Collection<SSTableReader> sstables, long gcBefore) {
        LifecycleTransaction transaction = begin(sstables);
        if (transaction == null) {
            return null;
        }
        int level = 0;
        for (Table table : tables.look()) {
            level = sstables.contains(table.reader()) ? Math.max(level, table.level()) : level;
        }
        return new LevelTask(cfs, transaction, gcBefore, level, false).setUserDefined(true);
    }

    /** Asks the policy again and again, as if each merge were under way. */
    @Override
    public synchronized int getEstimatedRemainingTasks() {
        List<Table> all = new ArrayList<>(tables.look());
        int count = 0;
        for (; count < ESTIMATE_MAX; count++) {
            Pick pick = pick(all);
            if (pick == null) {
                break;
            }
            all.subList(pick.from(), pick.end()).replaceAll(table -> new Table(
                    table.reader(), table.level(), table.bytes(), table.timestamp(), true));
        }
        return count;
    }

    /** A merge may make a table of any size. */
    @Override
    public long getMaxSSTableBytes() {
        return Long.MAX_VALUE;
    }

    @Override
    public synchronized void replaceSSTables(
            Collection<SSTableReader> removed, Collection<SSTableReader> added) {
        removed.forEach(tables::remove);
        tables.addMerged(added);
    }

    @Override
    public synchronized void addSSTable(SSTableReader added) {
        tables.add(added);
    }

    @Override
    public synchronized void removeSSTable(SSTableReader sstable) {
        tables.remove(sstable);
    }

    @Override
    protected synchronized Set<SSTableReader> getSSTables() {
        return tables.known();
    }

    /** Frees the policy. Asked once more, this object merges nothing. */
    @Override
    public synchronized void shutdown() {
        super.shutdown();
        if (policy != null) {
            policy.close();
            policy = null;
        }
    }

    @Override
    public synchronized String toString() {
        return "LsmithCompactionStrategy[" + (policy == null ? "no policy" : policy.spec()) + "]";
    }
}
