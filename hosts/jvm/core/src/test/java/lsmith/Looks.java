package lsmith;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The looks of policies at trees that lsmith's simulation had, and the merges that they asked for:
 * {@code hosts/conformance/picks.txt}. Each host shows the same runs and gets the same picks. Each
 * host refuses the same policies.
 */
public final class Looks {
    private static final Path FOLDER = Path.of("../../conformance");

    /** A run: newest first in its look. */
    public record Run(int level, long bytes) {}

    /**
     * A look.
     *
     * @param policy the spec of the policy
     * @param flushes the number of flushes so far
     * @param flushedBytes their bytes
     * @param notes what the policy remembers
     * @param runs the runs, newest first
     * @param pick {@code FROM..END LEVEL}, or {@code none}
     */
    public record Look(
            String policy,
            long flushes,
            long flushedBytes,
            Map<String, String> notes,
            List<Run> runs,
            String pick) {
        /** Fills {@code runs} with this look. */
        public void fill(Runs filled) {
            filled.clear(flushedBytes / flushes, flushes, flushedBytes);
            filled.notes().clear();
            notes.forEach(filled.notes()::put);
            runs.forEach(run -> filled.add(run.bytes(), run.level(), false));
        }
    }

    private Looks() {}

    /** Returns a pick in the words of the file. */
    public static String words(Pick pick) {
        return pick == null ? "none" : pick.from() + ".." + pick.end() + " " + pick.level();
    }

    /** Reads all looks. The folder of a module is the working directory of its tests. */
    public static List<Look> read() throws IOException {
        List<Look> looks = new ArrayList<>();
        String policy = null;
        for (String line : Files.readAllLines(FOLDER.resolve("picks.txt"))) {
            if (line.startsWith("policy ")) {
                policy = line.substring("policy ".length());
            } else if (line.startsWith("look ")) {
                looks.add(look(policy, line));
            }
        }
        return looks;
    }

    /**
     * Returns specs of all policies with what each of them needs that hosts do not have, or {@code
     * nothing}.
     */
    public static Map<String, String> needs() throws IOException {
        Map<String, String> needs = new TreeMap<>();
        for (String line : Files.readAllLines(FOLDER.resolve("needs.txt"))) {
            String[] sides = line.split(" -> ");
            needs.put(sides[0], sides[1]);
        }
        return needs;
    }

    private static Look look(String policy, String line) {
        String[] sides = line.split(" -> ");
        String[] words = sides[0].split(" ");
        Map<String, String> notes = new TreeMap<>();
        List<Run> runs = new ArrayList<>();
        for (int index = 3; index < words.length; index++) {
            String[] parts = words[index].split("[=:]", 2);
            if (words[index].contains("=")) {
                notes.put(parts[0], parts[1]);
            } else {
                runs.add(new Run(Integer.parseInt(parts[0]), Long.parseLong(parts[1])));
            }
        }
        return new Look(policy, Long.parseLong(words[1]), Long.parseLong(words[2]), notes, runs,
                sides[1]);
    }
}
