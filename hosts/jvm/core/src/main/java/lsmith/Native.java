package lsmith;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Loads the library that the jar carries, once for each class loader.
 *
 * <p>The system property {@value #PATH} names another library to load instead. That is the way out
 * where temporary files may not be executed, and on systems that the jar has no library for.
 */
public final class Native {
    /** The system property that names the library to load. */
    public static final String PATH = "lsmith.library";

    private static final String FILE = "liblsmith_jni.so";

    private Native() {}

    /** Loads the library when a class that needs it is first used. */
    private static final class Holder {
        static final LsmithException FAILED = load();
    }

    /**
     * Loads the library, unless it is loaded.
     *
     * @throws LsmithException {@link ErrorKind#UNSUPPORTED} if there is no library for this system,
     *     {@link ErrorKind#IO} if it cannot be unpacked or loaded
     */
    public static void ensureLoaded() {
        LsmithException failed = Holder.FAILED;
        if (failed != null) {
            throw new LsmithException(failed.kind(), failed.getMessage());
        }
    }

    private static LsmithException load() {
        String given = System.getProperty(PATH);
        try {
            if (given != null) {
                System.load(Path.of(given).toAbsolutePath().toString());
                return null;
            }
            String platform = platform();
            String resource = "/lsmith/native/" + platform + "/" + FILE;
            try (InputStream library = Native.class.getResourceAsStream(resource)) {
                if (library == null) {
                    return missing(platform);
                }
                loadFrom(library);
                return null;
            }
        } catch (IOException | LinkageError | SecurityException error) {
            String what = given == null ? "the library in the jar" : given;
            String message = "expected to load " + what + ", found: " + error.getMessage()
                    + "; -D" + PATH + "=FILE loads another file, -Djava.io.tmpdir=DIR unpacks"
                    + " the one in the jar elsewhere";
            LsmithException failed = new LsmithException(ErrorKind.IO, message);
            failed.initCause(error);
            return failed;
        }
    }

    private static LsmithException missing(String platform) {
        return new LsmithException(ErrorKind.UNSUPPORTED, "expected x86-64 Linux, found "
                + platform + ": this jar carries no library for it; build one with"
                + " hosts/jvm/core/build-native.sh, and name it with -D" + PATH + "=FILE");
    }

    /** Unpacks the library and loads it. Once it is loaded its file is not needed any more. */
    private static void loadFrom(InputStream library) throws IOException {
        Path file = Files.createTempFile("lsmith", ".so");
        try {
            Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toString());
        } finally {
            Files.deleteIfExists(file);
        }
    }

    /** Returns the system and the processor, such as {@code linux-x86_64}. */
    static String platform() {
        String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        return system.replace(' ', '_') + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }
}
