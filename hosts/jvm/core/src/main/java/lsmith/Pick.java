package lsmith;

import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * A merge of neighbouring runs that a policy asks for.
 *
 * @param from the index of the newest run
 * @param end the index behind the oldest run
 * @param level the level of the run that the merge makes
 * @param notes what the policy wants to remember; a value of null forgets the name
 * @param reason why, in the words of the policy
 */
public record Pick(int from, int end, int level, Map<String, String> notes, String reason) {

    /**
     * Reads a plan.
     *
     * @throws LsmithException if it is no merge of neighbouring whole runs
     */
    static Pick of(String plan, Runs runs, String spec) {
        Scanner words = new Scanner(plan);
        if (!words.next().equals("merge")) {
            throw inexpressible(plan, spec);
        }
        int from = -1;
        int end = -1;
        String word = words.next();
        for (; word.startsWith("r"); word = words.next()) {
            if (word.indexOf(':') >= 0) {
                throw inexpressible(plan, spec);
            }
            int index = runs.index(word);
            if (end >= 0 && index != end) {
                throw inexpressible(plan, spec);
            }
            from = end < 0 ? index : from;
            end = index + 1;
        }
        if (end < 0 || !word.equals("over") || !words.next().equals("..")) {
            throw inexpressible(plan, spec);
        }
        int level = level(words, runs, end - 1);
        if (level < 0) {
            throw inexpressible(plan, spec);
        }
        Map<String, String> notes = notes(words, plan, spec);
        return new Pick(from, end, level, notes, words.rest());
    }

    /** Returns true if a merge that is under way takes one of the runs. */
    boolean isBusy(Runs runs) {
        return IntStream.range(from, end).anyMatch(runs::isBusy);
    }

    /** Returns the level of the output, which takes the place of the oldest run; -1 if not. */
    private static int level(Scanner words, Runs runs, int oldest) {
        String word = words.next();
        if (word.equals("in")) {
            return words.next().equals("place") ? runs.level(oldest) : -1;
        }
        if (!word.equals("into")) {
            return -1;
        }
        word = words.next();
        if (word.startsWith("r")) {
            return runs.index(word) == oldest ? runs.level(oldest) : -1;
        }
        boolean isNewRun = word.equals("new") && words.next().equals("run")
                && words.next().equals("at");
        word = words.next();
        return isNewRun && word.matches("L[0-9]{1,4}") ? Integer.parseInt(word.substring(1)) : -1;
    }

    private static Map<String, String> notes(Scanner words, String plan, String spec) {
        Map<String, String> notes = new HashMap<>();
        for (String word = words.next(); !word.isEmpty(); word = words.next()) {
            String note = words.next();
            int equals = note.indexOf('=');
            if (word.equals("note") && equals > 0) {
                notes.put(note.substring(0, equals), note.substring(equals + 1));
            } else if (word.equals("forget") && !note.isEmpty()) {
                notes.put(note, null);
            } else {
                throw inexpressible(plan, spec);
            }
        }
        return notes;
    }

    private static LsmithException inexpressible(String plan, String spec) {
        return new LsmithException(ErrorKind.INVALID_ARGUMENT, "expected `" + spec
                + "` to merge neighbouring whole runs, found `" + plan + "`");
    }

    /** Reads the words of a plan. A word may have quoted parts with spaces in them. */
    private static final class Scanner {
        private final String text;
        private int at;

        Scanner(String text) {
            this.text = text;
        }

        /** Returns the next word, or an empty text at the end and at the reason. */
        String next() {
            while (at < text.length() && text.charAt(at) == ' ') {
                at++;
            }
            int start = at;
            boolean isQuoted = false;
            while (at < text.length() && (isQuoted || text.charAt(at) != ' ')) {
                char c = text.charAt(at);
                if (start == at && c == '#') {
                    return "";
                }
                if (c == '"') {
                    isQuoted = !isQuoted;
                } else if (c == '\\') {
                    at++;
                }
                at++;
            }
            at = Math.min(at, text.length());
            return text.substring(start, at);
        }

        /** Returns the reason. */
        String rest() {
            return at < text.length() ? text.substring(at + 1).strip() : "";
        }
    }
}
