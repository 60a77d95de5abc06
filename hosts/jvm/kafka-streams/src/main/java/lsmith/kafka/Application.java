package lsmith.kafka;

import java.util.HashMap;
import java.util.Map;
import lsmith.Shared;

/**
 * What the open stores of one application share in this process. Kafka makes many suppliers and
 * stores, and hands them nothing that is common to them; so the applications with open stores are
 * known here by their ids.
 */
final class Application {
    private static final Map<String, Application> OPEN = new HashMap<>();

    private final String id;
    final Shared shared;
    private int stores;

    private Application(String id, LsmithConfig config) {
        this.id = id;
        this.shared = new Shared(config.memoryBytes(), config.threads());
    }

    /** Returns the application called {@code id}, for a store that ends with {@link #leave}. */
    static Application enter(String id, LsmithConfig config) {
        synchronized (OPEN) {
            Application found = OPEN.computeIfAbsent(id, key -> new Application(key, config));
            found.stores++;
            return found;
        }
    }

    /** Ends the use by one store, after it was closed. */
    void leave() {
        synchronized (OPEN) {
            stores--;
            if (stores == 0) {
                OPEN.remove(id);
                shared.close();
            }
        }
    }
}
