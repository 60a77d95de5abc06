package lsmith.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import javax.management.Attribute;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.ActiveCompactionsTracker;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.CompactionParams;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tables on a node in this process: all rows are right whatever the policy says. */
class StrategyTest {
    @BeforeAll
    static void start() {
        Node.ensureStarted();
    }

    private static void alter(ColumnFamilyStore table, String policy) {
        Node.run("ALTER TABLE " + Node.KEYSPACE + "." + table.name + " WITH compaction = "
                + Node.compaction(policy));
    }

    private static String spec(ColumnFamilyStore table) {
        return table.getCompactionStrategyManager().getStrategies().get(1).get(0).toString();
    }

    @Test
    void policyIsReplacedUnderWay() {
        ColumnFamilyStore table = Node.createTable("altered", "tiered(ratio=3)");
        Model model = new Model(table, 1);
        for (String policy : new String[] {
            "tiered(ratio=2)", "bigtable(k=3)", "auto(runs=4, eager=never)", "none", "constant(k=2)"
        }) {
            model.rounds(6);
            model.check();
            alter(table, policy);
            assertTrue(spec(table).contains("[" + policy.split("\\(")[0]), spec(table));
        }
        model.rounds(6);
        model.check();
        assertTrue(table.metric.compactionBytesWritten.getCount() > 0);
        assertTrue(table.getLiveSSTables().size() <= 2 * 2, table.getLiveSSTables().toString());
        table.forceMajorCompaction();
        model.check();
        assertEquals(2, table.getLiveSSTables().size());
    }

    /** Its tables have no level, so sizes say it; Leveled compaction accepts the levels of ours. */
    @Test
    void tablesGoToOtherStrategiesAndBack() {
        ColumnFamilyStore table = Node.createTable("moved", "tiered(ratio=2)");
        Model model = new Model(table, 2);
        for (String strategy : new String[] {
            "SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "UnifiedCompactionStrategy"
        }) {
            model.rounds(5);
            Node.run("ALTER TABLE " + Node.KEYSPACE + ".moved WITH compaction = {'class': '"
                    + strategy + "'}");
            model.rounds(5);
            model.check();
            alter(table, "tiered(ratio=2)");
            Node.settle(table);
            model.check();
        }
    }

    @Test
    void tablesWithoutLevelHaveOneBySize() {
        assertEquals(0, Tables.levelOf(1));
        assertEquals(0, Tables.levelOf(3.9));
        assertEquals(1, Tables.levelOf(4));
        assertEquals(2, Tables.levelOf(16));
        assertEquals(Tables.LEVEL_MAX, Tables.levelOf(1e30));
    }

    /** Each directory has its own strategy, and repaired tables have one more. */
    @Test
    void repairedTablesAreMergedAmongThemselves() throws Exception {
        ColumnFamilyStore table = Node.createTable("repaired", "none");
        Model model = new Model(table, 5);
        model.rounds(4);
        table.getCompactionStrategyManager()
                .mutateRepaired(table.getLiveSSTables(), 1_000_000, null, false);
        model.rounds(3);
        alter(table, "constant(k=2)");
        Node.settle(table);
        model.check();
        List<String> kinds = table.getLiveSSTables().stream()
                .map(sstable -> sstable.isRepaired() + " "
                        + sstable.descriptor.directory.toString()
                                .replaceAll(".*/(data[12])/.*", "$1"))
                .sorted().toList();
        assertEquals(List.of("false data1", "false data2", "true data1", "true data2"), kinds);
    }

    @Test
    void nonsenseOfAPolicyKeepsAllRows() {
        for (String policy : new String[] {"hostile", "hostile_picks"}) {
            ColumnFamilyStore table = Node.createTable("under_" + policy, policy);
            Model model = new Model(table, 3);
            model.rounds(25);
            model.check();
            assertTrue(table.metric.compactionBytesWritten.getCount() > 0, "some plans are legal");
            alter(table, "tiered(ratio=4)");
            model.rounds(4);
            model.check();
        }
    }

    /** The policy of one node changes, and the schema does not. */
    @Test
    void oneNodeTriesAnotherPolicyByManagement() throws Exception {
        ColumnFamilyStore table = Node.createTable("canary", "none");
        Model model = new Model(table, 4);
        model.rounds(6);
        assertEquals(2 * 6, table.getLiveSSTables().size());
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("org.apache.cassandra.db:type=Tables,keyspace="
                + Node.KEYSPACE + ",table=canary");
        String json = Node.compaction("constant(k=2)").replace('\'', '"');
        server.setAttribute(name, new Attribute("CompactionParametersJson", json));
        assertTrue(spec(table).contains("constant(k=2"), spec(table));
        Node.settle(table);
        assertEquals(2, table.getLiveSSTables().size());
        assertEquals("none", table.metadata().params.compaction.options().get("policy"));
        model.check();
        String bad = Node.compaction("constnt").replace('\'', '"');
        assertThrows(Exception.class,
                () -> server.setAttribute(name, new Attribute("CompactionParametersJson", bad)));
        assertTrue(spec(table).contains("constant(k=2"), spec(table));
    }

    @Test
    void wrongOptionsAreRefusedInItsOwnWords() {
        assertRefused("{'class': 'lsmith.cassandra.LsmithCompactionStrategy', 'polcy': 'none'}",
                "polcy");
        assertRefused(Node.compaction("tierd"), "tiered");
        assertRefused(Node.compaction("tiered(ratio=0)"), "ratio");
        assertRefused(Node.compaction("leveled"), "merges whole runs");
        assertRefused(Node.compaction("fifo"), "drops runs unread");
        CompactionParams.create(LsmithCompactionStrategy.class, Map.of()).validate();
    }

    /** As on a node with an older library, to which the schema comes from another node. */
    @Test
    void nodeThatCannotMakeThePolicyMergesNothing() {
        ColumnFamilyStore table = Node.createTable("unknown", "none");
        Model model = new Model(table, 6);
        model.rounds(5);
        for (String policy : new String[] {"tierd", "leveled", "constant(k=2)"}) {
            LsmithCompactionStrategy strategy =
                    new LsmithCompactionStrategy(table, Map.of("policy", policy));
            strategy.addSSTables(table.getLiveSSTables());
            AbstractCompactionTask task = strategy.getNextBackgroundTask(0);
            assertEquals(policy.startsWith("constant"), task != null, policy);
            if (task != null) {
                task.execute(ActiveCompactionsTracker.NOOP);
            }
            strategy.shutdown();
            assertNull(strategy.getNextBackgroundTask(0));
        }
        model.check();
    }

    private static void assertRefused(String compaction, String why) {
        ConfigurationException error = assertThrows(ConfigurationException.class,
                () -> Node.run("CREATE TABLE " + Node.KEYSPACE
                        + ".refused (p int PRIMARY KEY) WITH compaction = " + compaction));
        assertTrue(error.getMessage().contains(why), error.getMessage());
    }
}
