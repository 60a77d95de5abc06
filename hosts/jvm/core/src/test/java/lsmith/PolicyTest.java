package lsmith;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PolicyTest {
    private static Runs runs(long flushes, long... newestFirst) {
        Runs runs = new Runs().clear(10, flushes, 10 * flushes);
        for (long bytes : newestFirst) {
            runs.add(bytes, 0, false);
        }
        return runs;
    }

    @Test
    void fullLevelBecomesOneRunOfTheNext() {
        try (Policy policy = new Policy("tiered(ratio=4)")) {
            Pick pick = policy.pick(runs(44, 10, 10, 10, 10));
            assertEquals(0, pick.from());
            assertEquals(4, pick.end());
            assertEquals(1, pick.level());
            assertEquals("level 0 has 4 runs of 4", pick.reason());
            assertNull(policy.pick(runs(43, 10, 10, 10)));
        }
    }

    @Test
    void busyRunsAreLeftAlone() {
        try (Policy policy = new Policy("tiered(ratio=4)")) {
            Pick pick = policy.pick(withBusy(0, 5));
            assertEquals(5, pick.from());
            assertEquals(9, pick.end());
            // Four newer runs may not pass the ones that are being merged.
            assertNull(policy.pick(withBusy(5, 9)));
        }
    }

    private static Runs withBusy(int from, int end) {
        Runs runs = new Runs().clear(10, 9, 90);
        for (int index = 0; index < 9; index++) {
            runs.add(10, 0, from <= index && index < end);
        }
        return runs;
    }

    @Test
    void notesOfThePlanComeBackInTheNextView() {
        try (Policy policy = new Policy("auto(runs=8)")) {
            Runs runs = runs(12, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10);
            Pick pick = policy.pick(runs);
            assertEquals("12", pick.notes().get("merged_at"));
            runs.notes().apply(pick);
            assertTrue(runs.view().contains("\nnote merged_at=12\n"), runs.view());
            assertNull(policy.pick(resized(runs, 10, 10, 10, 10, 10, 10, 10, 10)));
        }
    }

    private static Runs resized(Runs runs, long... newestFirst) {
        runs.clear(10, 12, 120);
        for (long bytes : newestFirst) {
            runs.add(bytes, 0, false);
        }
        return runs;
    }

    @Test
    void unknownPolicyNamesTheNearest() {
        LsmithException error = assertThrows(LsmithException.class, () -> new Policy("tierd"));
        assertEquals(ErrorKind.INVALID_ARGUMENT, error.kind());
        assertTrue(error.getMessage().contains("tiered"), error.getMessage());
    }

    @Test
    void plansOfPartsOfRunsAreRefused() {
        Runs runs = new Runs();
        runs.clear(10, 3, 30).add(10, 0, false);
        runs.add(10, 1, false);
        for (String plan : new String[] {
            "move r2 over .. into new run at L1", "merge r2:a..b r1 over .. into r1",
            "merge r1 r2 over .. in place", "merge r2 r1 over a..b into r1", "drop r1 over ..",
            "merge r2 over .. into r1", "merge r2 r1 over .. in place cut 5B", "merge r3 over ..",
            "merge", "", "merge r2 r1 over .. into new run at M"
        }) {
            assertThrows(LsmithException.class, () -> Pick.of(plan, runs, "a policy"), plan);
        }
        Pick pick = Pick.of("merge r2 r1 over .. in place note \"a b\"=\"c # \\\" d\" forget e # f g",
                runs, "a policy");
        assertEquals("\"c # \\\" d\"", pick.notes().get("\"a b\""));
        assertTrue(pick.notes().containsKey("e"));
        assertEquals("f g", pick.reason());
    }

    @Test
    void closedPolicySaysSo() {
        Policy policy = new Policy("none");
        policy.check();
        policy.close();
        policy.close();
        assertThrows(IllegalStateException.class, () -> policy.pick(runs(1, 10)));
        assertThrows(IllegalStateException.class, policy::check);
    }

    @Test
    void viewThatNoTreeCanHaveIsAnError() {
        try (Policy policy = new Policy("none")) {
            assertThrows(LsmithException.class, () -> policy.nextMerge("view of the sea"));
        }
    }
}
