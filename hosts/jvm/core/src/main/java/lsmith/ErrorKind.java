package lsmith;

/** What kind of thing went wrong, in the order of {@code lsmith_error_kind_t} in lsmith.h. */
public enum ErrorKind {
    /** The operating system refused an operation. */
    IO,
    /** The device has no room left. Reads go on; writes work again once there is room. */
    FULL,
    /** The contents of a file are not what was written to it. */
    CORRUPTION,
    /** The call broke a rule that its description states. */
    INVALID_ARGUMENT,
    /** Another process or another handle has the store open. */
    LOCKED,
    /** Others have changed what a transaction used. Nothing was written. */
    CONFLICT,
    /** A write to a log or the manifest failed. Writes are refused until the store is reopened. */
    POISONED,
    /** The directory holds no store, or the named keyspace does not exist. */
    NOT_FOUND,
    /** The log does not hold the changes that were asked for any more. */
    GONE,
    /** A newer version wrote the files, or they need a policy that is not there. */
    UNSUPPORTED,
    /** The store was opened for reading only. */
    READ_ONLY,
    /** A merge policy panicked or answered nonsense, or a thread that merges panicked. */
    PANICKED,
    /** Code of the application that the store calls for single keys failed. */
    CALLBACK,
    /** A call panicked. This is a bug of lsmith; close the handles that it used. */
    INTERNAL;

    private static final ErrorKind[] ALL = values();

    /** Returns the kind of a code of lsmith.h. A code that is not known is INTERNAL. */
    static ErrorKind of(int code) {
        return code >= 1 && code <= ALL.length ? ALL[code - 1] : INTERNAL;
    }
}
