package lsmith;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The same sizes in, the same picks out: across the glue. */
class ConformanceTest {
    @Test
    void picksAreThePicksOfTheSimulation() throws IOException {
        List<Looks.Look> looks = Looks.read();
        assertTrue(looks.stream().filter(look -> !look.pick().equals("none")).count() > 100);
        Runs runs = new Runs();
        for (Looks.Look look : looks) {
            try (Policy policy = new Policy(look.policy())) {
                policy.requireWholeRuns();
                look.fill(runs);
                assertEquals(look.pick(), Looks.words(policy.pick(runs)), look::toString);
            }
        }
    }

    @Test
    void policiesThatNeedMoreAreRefused() throws IOException {
        Looks.needs().forEach((spec, need) -> {
            try (Policy policy = new Policy(spec)) {
                if (need.equals("nothing")) {
                    policy.requireWholeRuns();
                } else {
                    LsmithException error =
                            assertThrows(LsmithException.class, policy::requireWholeRuns);
                    assertTrue(error.getMessage().endsWith(need), error.getMessage());
                }
            }
        });
    }
}
