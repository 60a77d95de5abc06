#include "lsmith.h"
#include <stdio.h>

int main(int argc, char **argv) {
    lsmith_error_t *error = NULL;
    lsmith_t *store = lsmith_open(argc > 1 ? argv[1] : "quickstart.db", NULL, &error);
    lsmith_keyspace_t *fruit = lsmith_keyspace(store, "fruit", "policy=tiered(ratio=4)", &error);
    lsmith_put(fruit, LSMITH_BUFFER, "apple", 5, "red", 3, &error);
    char *value = lsmith_get(fruit, NULL, "apple", 5, NULL, &error);
    printf("%s\n", error ? lsmith_error_message(error) : value);
    lsmith_free(value);
    lsmith_error_destroy(error);
    lsmith_keyspace_destroy(fruit);
    lsmith_close(store);
    return error != NULL;
}
