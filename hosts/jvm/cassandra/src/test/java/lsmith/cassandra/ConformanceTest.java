package lsmith.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import lsmith.Looks;
import lsmith.Policy;
import lsmith.cassandra.Tables.Table;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The same sizes in, the same picks out, whatever the order in which Cassandra lists tables. */
class ConformanceTest {
    @BeforeAll
    static void start() {
        Node.ensureStarted();
    }

    @Test
    void picksAreThePicksOfTheSimulation() throws IOException {
        ColumnFamilyStore store = Node.createTable("conformance", "none");
        Random random = new Random(1);
        for (Looks.Look look : Looks.read()) {
            List<Table> listed = new ArrayList<>();
            long timestamp = 1_000_000;
            for (Looks.Run run : look.runs()) {
                timestamp -= 1 + random.nextInt(1000);
                listed.add(new Table(null, run.level(), run.bytes(), timestamp, false));
            }
            Collections.shuffle(listed, random);
            listed.sort(Tables.ORDER);
            Tables tables = new Tables(store, look.flushes(), look.flushedBytes(), look.notes());
            try (Policy policy = new Policy(look.policy())) {
                String words = Looks.words(policy.pick(tables.runs(listed)));
                assertEquals(look.pick(), words, look::toString);
            }
        }
    }

    @Test
    void policiesThatNeedMoreAreRefused() throws IOException {
        Looks.needs().forEach((spec, need) -> {
            Map<String, String> options = Map.of(LsmithCompactionStrategy.POLICY, spec);
            if (need.equals("nothing")) {
                assertEquals(Map.of(), LsmithCompactionStrategy.validateOptions(options));
            } else {
                ConfigurationException error = assertThrows(ConfigurationException.class,
                        () -> LsmithCompactionStrategy.validateOptions(options));
                assertTrue(error.getMessage().endsWith(need), error.getMessage());
            }
        });
    }
}
