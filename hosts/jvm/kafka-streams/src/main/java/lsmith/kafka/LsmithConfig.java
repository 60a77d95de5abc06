package lsmith.kafka;

import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/**
 * The settings of an application, from the map that makes its {@code StreamsConfig}.
 *
 * @param memoryBytes {@value #MEMORY_BYTES}: the limit on the memory of all stores of the
 *     application in this process together. Default: 128 MiB
 * @param threads {@value #THREADS}: the threads that merge for all of them. Default: 2
 * @param options {@value #POLICY} and {@value #OPTIONS} as one text
 * @param syncs {@value #SYNC}: whether a flush makes writes survive power loss. Default: true
 */
record LsmithConfig(long memoryBytes, int threads, String options, boolean syncs) {
    static final String MEMORY_BYTES = "lsmith.memory.bytes";
    static final String THREADS = "lsmith.threads";
    static final String POLICY = "lsmith.policy";
    static final String OPTIONS = "lsmith.options";
    static final String SYNC = "lsmith.sync";

    private static final long MEMORY_BYTES_DEFAULT = 128L << 20;

    static LsmithConfig of(Map<String, ?> configs) {
        long memory = number(configs, MEMORY_BYTES, MEMORY_BYTES_DEFAULT, 1 << 20, Long.MAX_VALUE);
        int threads = (int) number(configs, THREADS, 2, 1, 1024);
        String policy = text(configs, POLICY);
        String options = text(configs, OPTIONS);
        if (!policy.isEmpty()) {
            options = "policy=" + policy + (options.isEmpty() ? "" : ", " + options);
        }
        String sync = text(configs, SYNC);
        if (!sync.isEmpty() && !sync.equals("true") && !sync.equals("false")) {
            throw new ConfigException(SYNC, sync, "expected true or false");
        }
        return new LsmithConfig(memory, threads, options, !sync.equals("false"));
    }

    private static String text(Map<String, ?> configs, String name) {
        Object value = configs.get(name);
        return value == null ? "" : value.toString().trim();
    }

    private static long number(Map<String, ?> configs, String name, long usual, long least,
            long most) {
        String text = text(configs, name);
        try {
            long number = text.isEmpty() ? usual : Long.parseLong(text);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Told below, as a number out of range is.
        }
        throw new ConfigException(name, text, "expected a number of at least " + least);
    }
}
