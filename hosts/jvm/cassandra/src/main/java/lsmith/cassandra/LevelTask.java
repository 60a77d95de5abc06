package lsmith.cassandra;

import java.util.Set;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.CompactionTask;
import org.apache.cassandra.db.compaction.writers.CompactionAwareWriter;
import org.apache.cassandra.db.compaction.writers.SplittingSizeTieredCompactionWriter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Cassandra's own compaction. It writes a level into its output. */
final class LevelTask extends CompactionTask {
    private final int level;
    private final boolean isSplit;

    /**
     * @param isSplit true to cut the output into tables of falling size, as {@code nodetool compact
     *     --split-output} asks; they have no level
     */
    LevelTask(
            ColumnFamilyStore store,
            LifecycleTransaction transaction,
            long gcBefore,
            int level,
            boolean isSplit) {
        super(store, transaction, gcBefore);
        this.level = level;
        this.isSplit = isSplit;
    }

    @Override
    protected int getLevel() {
        return level;
    }

    @Override
    public CompactionAwareWriter getCompactionAwareWriter(
            ColumnFamilyStore store,
            Directories directories,
            LifecycleTransaction transaction,
            Set<SSTableReader> tables) {
        return isSplit
                ? new SplittingSizeTieredCompactionWriter(store, directories, transaction, tables)
                : super.getCompactionAwareWriter(store, directories, transaction, tables);
    }
}
