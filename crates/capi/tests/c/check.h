// What the tests in C share.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                               \
    do {                                                                          \
        if (!(what)) {                                                            \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #what);   \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

// Fails if there is an error.
#define FINE(error)                                                               \
    do {                                                                          \
        if (error) {                                                              \
            const char *why = lsmith_error_message(error);                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, why);              \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

// Fails unless there is an error of this kind whose message has this text, and destroys it.
#define FAILED(error, wanted, text)                                               \
    do {                                                                          \
        CHECK(error != NULL);                                                     \
        CHECK(lsmith_error_kind(error) == wanted);                                \
        if (!strstr(lsmith_error_message(error), text)) {                         \
            const char *why = lsmith_error_message(error);                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, why);              \
            exit(1);                                                              \
        }                                                                         \
        lsmith_error_destroy(error);                                              \
        error = NULL;                                                             \
    } while (0)
