package lsmith;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a policy remembers: names and values, as its plans spell them. A host keeps the notes of a
 * plan with its merge. Notes that are lost cost bytes that are written, and nothing else.
 */
public final class Notes {
    private final Map<String, String> values = new TreeMap<>();

    /** Forgets everything. */
    public void clear() {
        values.clear();
    }

    /** Remembers a value as {@link #values} has spelled it. */
    public void put(String name, String value) {
        values.put(name, value);
    }

    /** Returns all names and values. */
    public Map<String, String> values() {
        return Collections.unmodifiableMap(values);
    }

    /** Takes over the changes of a plan. */
    public void apply(Pick pick) {
        pick.notes().forEach((name, value) -> {
            if (value == null) {
                values.remove(name);
            } else {
                values.put(name, value);
            }
        });
    }

    void appendTo(StringBuilder text) {
        values.forEach((name, value) ->
                text.append("note ").append(name).append('=').append(value).append('\n'));
    }
}
