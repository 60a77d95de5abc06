package lsmith;

import java.nio.charset.StandardCharsets;

/**
 * An error of lsmith. Its message says what was expected, what was found, where, and the way out.
 */
public class LsmithException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final ErrorKind kind;

    /** Makes an error of this kind. */
    public LsmithException(ErrorKind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Makes the error of a call of the library; called by it. */
    LsmithException(int code, byte[] message) {
        this(ErrorKind.of(code), new String(message, StandardCharsets.UTF_8));
    }

    /** Returns the kind of the error. */
    public ErrorKind kind() {
        return kind;
    }
}
