import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.service.CassandraDaemon;

/**
 * Runs Cassandra 5.0 in this process, with a table by size tiers and a leveled one, both with
 * log_all. Cassandra writes compaction.log, and this FILE has what its metrics say in the end.
 */
class Cassandra50 {
    static void create(String table, String compaction) {
        QueryProcessor.process("CREATE TABLE app." + table + " (k int PRIMARY KEY, v blob) WITH "
            + "compression={'enabled':'false'} AND compaction={'class':'" + compaction
            + ", 'log_all':'true'}", ConsistencyLevel.ONE);
    }

    public static void main(String[] args) throws Exception {
        new CassandraDaemon(true).activate();
        QueryProcessor.process("CREATE KEYSPACE app WITH replication="
            + "{'class':'SimpleStrategy','replication_factor':1}", ConsistencyLevel.ONE);
        create("tiered", "SizeTieredCompactionStrategy', 'min_threshold':'4'");
        create("leveled", "LeveledCompactionStrategy', 'sstable_size_in_mb':'1'");
        Random draw = new Random(1);
        StringBuilder said = new StringBuilder();
        for (String table : List.of("tiered", "leveled")) {
            ColumnFamilyStore store = Keyspace.open("app").getColumnFamilyStore(table);
            for (int flush = 0; flush < 60; flush++) {
                for (int write = 0; write < 2000; write++) {
                    byte[] value = new byte[200];
                    draw.nextBytes(value);
                    QueryProcessor.executeInternal("INSERT INTO app." + table
                        + " (k, v) VALUES (?, ?)", draw.nextInt(40_000), ByteBuffer.wrap(value));
                }
                store.forceBlockingFlush(ColumnFamilyStore.FlushReason.UNIT_TESTS);
                Thread.sleep(120);
            }
            Thread.sleep(4000);
            said.append(String.format("app.%s sstables %d live %d compacted %d flushed %d%n", table,
                store.getLiveSSTables().size(), store.metric.liveDiskSpaceUsed.getCount(),
                store.metric.compactionBytesWritten.getCount(),
                store.metric.bytesFlushed.getCount()));
        }
        Files.writeString(Path.of(args[0]), said);
        Runtime.getRuntime().halt(0);
    }
}
