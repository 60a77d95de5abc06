// Every call of the store once, and what it says to nonsense.
#include "lsmith.h"
#include "check.h"

static lsmith_error_t *error = NULL;

static void put(lsmith_keyspace_t *keyspace, const char *key, const char *value) {
    CHECK(lsmith_put(keyspace, LSMITH_BUFFER, key, strlen(key), value, strlen(value), &error));
    FINE(error);
}

// The value of a key is `wanted`; null stands for no value.
static void has(lsmith_keyspace_t *keyspace, const lsmith_snapshot_t *at, const char *key,
                const char *wanted) {
    size_t len = 99;
    char *value = lsmith_get(keyspace, at, key, strlen(key), &len, &error);
    FINE(error);
    CHECK(lsmith_contains(keyspace, at, key, strlen(key), &error) == (wanted != NULL));
    if (!wanted) {
        CHECK(value == NULL);
        return;
    }
    CHECK(value != NULL && len == strlen(wanted) && strcmp(value, wanted) == 0);
    lsmith_free(value);
    lsmith_pinned_t *pinned = lsmith_get_pinned(keyspace, at, key, strlen(key), &error);
    const char *bytes = lsmith_pinned_value(pinned, &len);
    CHECK(len == strlen(wanted) && memcmp(bytes, wanted, len) == 0);
    lsmith_pinned_destroy(pinned);
}

static void is_on(lsmith_iterator_t *iter, const char *key, const char *value) {
    lsmith_iter_get_error(iter, &error);
    FINE(error);
    CHECK(lsmith_iter_valid(iter) == (key != NULL));
    size_t keylen, vallen;
    const char *found = lsmith_iter_key(iter, &keylen);
    const char *found_value = lsmith_iter_value(iter, &vallen);
    if (!key) {
        CHECK(found == NULL && found_value == NULL && keylen == 0 && vallen == 0);
        return;
    }
    CHECK(keylen == strlen(key) && memcmp(found, key, keylen) == 0);
    CHECK(vallen == strlen(value) && memcmp(found_value, value, vallen) == 0);
}

static void batches(lsmith_t *store, lsmith_keyspace_t *fruit, lsmith_keyspace_t *names) {
    lsmith_writebatch_t *batch = lsmith_writebatch_create();
    lsmith_writebatch_put(batch, fruit, "cherry", 6, "black", 5, &error);
    lsmith_writebatch_delete(batch, fruit, "apple", 5, &error);
    lsmith_writebatch_put(batch, names, "x", 1, "", 0, &error);
    lsmith_writebatch_delete_range(batch, names, "m", 1, NULL, 0, &error);
    CHECK(lsmith_writebatch_count(batch) == 4);
    CHECK(lsmith_write(store, LSMITH_SYNC_DATA, batch, &error));
    CHECK(lsmith_writebatch_count(batch) == 0);
    FINE(error);
    has(fruit, NULL, "cherry", "black");
    has(fruit, NULL, "apple", NULL);
    has(names, NULL, "x", NULL);
    lsmith_writebatch_put(batch, fruit, "a", 1, "b", 1, &error);
    CHECK(!lsmith_write(store, 7, batch, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "from 0 to 2");
    CHECK(lsmith_writebatch_count(batch) == 1);
    lsmith_writebatch_clear(batch);
    CHECK(lsmith_writebatch_count(batch) == 0);
    lsmith_writebatch_destroy(batch);
}

static void iterators(lsmith_t *store, lsmith_keyspace_t *fruit) {
    lsmith_snapshot_t *before = lsmith_create_snapshot(store, &error);
    put(fruit, "date", "brown");
    CHECK(lsmith_snapshot_get_sequence_number(before) > 0);
    has(fruit, before, "date", NULL);
    has(fruit, NULL, "date", "brown");
    lsmith_iterator_t *iter = lsmith_create_iterator(fruit, before, &error);
    is_on(iter, NULL, NULL);
    lsmith_iter_seek_to_first(iter);
    is_on(iter, "cherry", "black");
    lsmith_iter_next(iter);
    is_on(iter, "pear", "green");
    lsmith_iter_next(iter);
    is_on(iter, NULL, NULL);
    lsmith_iter_prev(iter);
    is_on(iter, "pear", "green");
    lsmith_iter_seek(iter, "d", 1);
    is_on(iter, "pear", "green");
    lsmith_iter_seek_for_prev(iter, "d", 1);
    is_on(iter, "cherry", "black");
    lsmith_iter_seek_to_last(iter);
    is_on(iter, "pear", "green");
    lsmith_release_snapshot(before);
    // The iterator keeps what it shows.
    lsmith_iter_seek_to_first(iter);
    is_on(iter, "cherry", "black");
    lsmith_iter_destroy(iter);
}

static void ranges(lsmith_keyspace_t *fruit) {
    lsmith_iterator_t *iter = lsmith_create_range_iterator(fruit, NULL, "d", 1, "p", 1, &error);
    FINE(error);
    lsmith_iter_seek_to_first(iter);
    is_on(iter, "date", "brown");
    lsmith_iter_next(iter);
    is_on(iter, NULL, NULL);
    lsmith_iter_seek(iter, "a", 1);
    is_on(iter, "date", "brown");
    lsmith_iter_seek(iter, "z", 1);
    is_on(iter, NULL, NULL);
    lsmith_iter_prev(iter);
    is_on(iter, "date", "brown");
    lsmith_iter_seek_for_prev(iter, "z", 1);
    is_on(iter, "date", "brown");
    lsmith_iter_seek_for_prev(iter, "a", 1);
    is_on(iter, NULL, NULL);
    lsmith_iter_destroy(iter);
    iter = lsmith_create_prefix_iterator(fruit, NULL, "pe", 2, &error);
    lsmith_iter_seek_to_last(iter);
    is_on(iter, "pear", "green");
    lsmith_iter_prev(iter);
    is_on(iter, NULL, NULL);
    lsmith_iter_destroy(iter);
    CHECK(lsmith_approximate_len(fruit, &error) >= 3);
}

static void shared(const char *path) {
    CHECK(lsmith_shared_create(1000, 1, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected at least 1048576, or 0");
    lsmith_shared_t *shared = lsmith_shared_create(16 << 20, 1, &error);
    FINE(error);
    lsmith_t *stores[2];
    for (int i = 0; i < 2; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s-shared-%d", path, i);
        stores[i] = lsmith_open_shared(name, "policy=tiered(ratio=4)", shared, &error);
        FINE(error);
        lsmith_keyspace_t *space = lsmith_keyspace(stores[i], "default", NULL, &error);
        put(space, "lsm", "tree");
        lsmith_keyspace_destroy(space);
    }
    CHECK(!lsmith_open_shared("unmade.db", "memory_bytes=64MiB", shared, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected no option `memory_bytes`");
    uint64_t held = lsmith_shared_memory(shared);
    CHECK(held > 0 && held < 16 << 20);
    lsmith_close(stores[0]);
    CHECK(lsmith_shared_memory(shared) < held);
    lsmith_shared_destroy(shared);
    lsmith_close(stores[1]);
}

// Writes a key file of 32 bytes, and opens the store `path` with `options` and this key.
static lsmith_t *with_key(const char *path, char byte, const char *options) {
    char file[4096], text[9000];
    snprintf(file, sizeof file, "%s-key-%c", path, byte);
    FILE *out = fopen(file, "wb");
    CHECK(out != NULL);
    for (int i = 0; i < 32; i++) {
        fputc(byte, out);
    }
    CHECK(fclose(out) == 0);
    snprintf(text, sizeof text, options, file);
    char store[4096];
    snprintf(store, sizeof store, "%s-encrypted", path);
    return lsmith_open(store, text, &error);
}

static void encrypted(const char *path) {
    lsmith_t *store = with_key(path, 'a', "key_file=%s");
    FINE(error);
    lsmith_keyspace_t *space = lsmith_keyspace(store, "default", NULL, &error);
    put(space, "lsm", "tree");
    lsmith_keyspace_destroy(space);
    lsmith_close(store);
    CHECK(!with_key(path, 'b', "key_file=%s"));
    FAILED(error, LSMITH_UNSUPPORTED, "the file is encrypted with key aes-256-gcm");
    CHECK(!with_key(path, 'a', "older_key_file=%s"));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "`older_key_file` needs `key_file`");
    char options[9000];
    snprintf(options, sizeof options, "key_file=%%s, older_key_file=%s-key-a, renew_keys=true",
             path);
    store = with_key(path, 'b', options);
    FINE(error);
    lsmith_close(store);
    store = with_key(path, 'b', "key_file=%s");
    FINE(error);
    space = lsmith_keyspace(store, "default", NULL, &error);
    has(space, NULL, "lsm", "tree");
    lsmith_keyspace_destroy(space);
    lsmith_close(store);
}

static void transactions(lsmith_t *store, lsmith_keyspace_t *fruit) {
    lsmith_transaction_t *one = lsmith_transaction_begin(store, LSMITH_SERIALIZABLE, &error);
    lsmith_transaction_t *two = lsmith_transaction_begin(store, LSMITH_SERIALIZABLE, &error);
    FINE(error);
    lsmith_pinned_destroy(lsmith_transaction_get(one, fruit, "pear", 4, &error));
    lsmith_transaction_put(one, fruit, "seen", 4, "yes", 3, &error);
    lsmith_transaction_set_savepoint(one);
    lsmith_transaction_delete_range(one, fruit, NULL, 0, NULL, 0, &error);
    CHECK(lsmith_transaction_rollback_to_savepoint(one, &error));
    CHECK(!lsmith_transaction_rollback_to_savepoint(one, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "savepoint");
    lsmith_transaction_put(two, fruit, "pear", 4, "ripe", 4, &error);
    CHECK(lsmith_transaction_commit(two, LSMITH_BUFFER, &error));
    CHECK(!lsmith_transaction_commit(one, LSMITH_BUFFER, &error));
    FAILED(error, LSMITH_CONFLICT, "");
    has(fruit, NULL, "pear", "ripe");
    has(fruit, NULL, "seen", NULL);
    lsmith_transaction_t *three = lsmith_transaction_begin(store, LSMITH_SNAPSHOT, &error);
    lsmith_pinned_destroy(lsmith_transaction_get_for_update(three, fruit, "pear", 4, &error));
    lsmith_transaction_delete(three, fruit, "pear", 4, &error);
    lsmith_transaction_rollback(three);
    FINE(error);
    CHECK(lsmith_transaction_begin(store, 5, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "lsmith_isolation_t");
}

static void feed(lsmith_t *store, lsmith_keyspace_t *fruit) {
    lsmith_snapshot_t *now = lsmith_create_snapshot(store, &error);
    uint64_t next = lsmith_snapshot_get_sequence_number(now) + 1;
    lsmith_release_snapshot(now);
    lsmith_changes_t *changes = lsmith_get_updates_since(store, next, &error);
    FINE(error);
    CHECK(lsmith_changes_next(changes, 0, &error) == NULL);
    put(fruit, "fig", "blue");
    lsmith_change_batch_t *batch = lsmith_changes_next(changes, 1000, &error);
    FINE(error);
    CHECK(lsmith_change_batch_count(batch) == 1);
    const char *keyspace, *key, *value;
    size_t keyspacelen, keylen, vallen;
    CHECK(lsmith_change_batch_get(batch, 0, &keyspace, &keyspacelen, &key, &keylen, &value,
                                  &vallen) == LSMITH_PUT);
    CHECK(keyspacelen == 5 && memcmp(keyspace, "fruit", 5) == 0);
    CHECK(keylen == 3 && memcmp(key, "fig", 3) == 0);
    CHECK(vallen == 4 && memcmp(value, "blue", 4) == 0);
    CHECK(lsmith_change_batch_get(batch, 1, NULL, NULL, NULL, NULL, NULL, NULL) ==
          LSMITH_NO_CHANGE);
    CHECK(lsmith_changes_next_sequence_number(changes) == next + 1);
    lsmith_change_batch_destroy(batch);
    lsmith_changes_destroy(changes);
}

static void upkeep(lsmith_t *store, lsmith_keyspace_t *fruit, const char *copy) {
    CHECK(lsmith_flush_wal(store, LSMITH_SYNC_ALL, &error));
    CHECK(lsmith_flush(store, &error));
    CHECK(lsmith_compact_range(fruit, NULL, 0, NULL, 0, &error));
    CHECK(lsmith_wait_for_compact(store, &error));
    CHECK(lsmith_approximate_size(fruit, "a", 1, "z", 1, &error) > 0);
    CHECK(lsmith_verify(store, &error) == 0);
    lsmith_retry(store);
    CHECK(lsmith_checkpoint_create(store, copy, &error));
    FINE(error);
    char *told = lsmith_property_value(store, "stats", &error);
    CHECK(strstr(told, "entries_written "));
    lsmith_free(told);
    told = lsmith_property_value(store, "memory", &error);
    CHECK(strstr(told, "memtables ") && !strstr(told, "limit"));
    lsmith_free(told);
    CHECK(lsmith_property_value(store, "weather", &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "found `weather`");
    told = lsmith_list_keyspaces(store, &error);
    CHECK(strstr(told, "fruit\n") && strstr(told, "names"));
    lsmith_free(told);
    CHECK(lsmith_set_merge_policy(fruit, "minlatency(k=3)", &error));
    told = lsmith_merge_policy(fruit, &error);
    CHECK(strcmp(told, "minlatency(k=3)") == 0);
    lsmith_free(told);
    CHECK(!lsmith_set_merge_policy(fruit, "minlatncy", &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "minlatency");
    CHECK(lsmith_drop_keyspace(store, "names", &error));
    CHECK(!lsmith_drop_keyspace(store, "names", &error));
    FAILED(error, LSMITH_NOT_FOUND, "names");
}

// Null pointers, bytes that are no text, and names that nobody has.
static void nonsense(const char *path, lsmith_t *store, lsmith_keyspace_t *fruit) {
    CHECK(lsmith_open(path, NULL, &error) == NULL);
    FAILED(error, LSMITH_LOCKED, "");
    CHECK(lsmith_open(NULL, NULL, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected a path, found a null pointer");
    CHECK(lsmith_open(path, "memtabel_bytes=1MiB", &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "did you mean `memtable_bytes`?");
    CHECK(lsmith_open("\xff", NULL, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "UTF-8");
    CHECK(!lsmith_put(NULL, LSMITH_BUFFER, "a", 1, "b", 1, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected a keyspace, found a null pointer");
    CHECK(!lsmith_put(fruit, LSMITH_BUFFER, NULL, 3, "b", 1, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected 3 bytes, found a null pointer");
    CHECK(lsmith_get(fruit, NULL, "a", (size_t)-1, NULL, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "2^63");
    // The first error stays.
    lsmith_put(NULL, LSMITH_BUFFER, "a", 1, "b", 1, &error);
    lsmith_put(fruit, 9, "a", 1, "b", 1, &error);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "keyspace");
    // Nobody asks for the error.
    CHECK(!lsmith_put(NULL, LSMITH_BUFFER, "a", 1, "b", 1, NULL));
    lsmith_iter_next(NULL);
    lsmith_iter_get_error(NULL, &error);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "iterator");
    lsmith_close(NULL);
    lsmith_error_destroy(NULL);
    lsmith_free(NULL);
    CHECK(strcmp(lsmith_error_message(NULL), "") == 0);
    CHECK(lsmith_keyspace(store, "", NULL, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "");
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char path[4096], copy[4096];
    snprintf(path, sizeof path, "%s/store", argv[1]);
    snprintf(copy, sizeof copy, "%s/copy", argv[1]);
    const char *options = "memtable_bytes=64KiB, changes_bytes=1MiB, policy=tiered(ratio=3)";
    lsmith_t *store = lsmith_open(path, options, &error);
    FINE(error);
    lsmith_keyspace_t *fruit = lsmith_keyspace(store, "fruit", NULL, &error);
    lsmith_keyspace_t *names = lsmith_keyspace(store, "names", "prefix_bytes=2", &error);
    FINE(error);
    put(fruit, "apple", "red");
    put(fruit, "pear", "green");
    put(fruit, "empty", "");
    has(fruit, NULL, "empty", "");
    CHECK(lsmith_delete(fruit, LSMITH_BUFFER, "empty", 5, &error));
    has(fruit, NULL, "empty", NULL);
    batches(store, fruit, names);
    iterators(store, fruit);
    ranges(fruit);
    transactions(store, fruit);
    feed(store, fruit);
    nonsense(path, store, fruit);
    upkeep(store, fruit, copy);
    CHECK(lsmith_delete_range(fruit, NULL, 0, "d", 1, &error));
    has(fruit, NULL, "cherry", NULL);
    lsmith_keyspace_t *counts = lsmith_keyspace(store, "counts", "operator=counter", &error);
    FINE(error);
    lsmith_keyspace_destroy(counts);
    lsmith_keyspace_destroy(names);
    // The keyspace keeps the store open.
    lsmith_close(store);
    has(fruit, NULL, "pear", "ripe");
    lsmith_keyspace_destroy(fruit);
    store = lsmith_open(path, "create_if_missing=false, read_only=true", &error);
    FINE(error);
    fruit = lsmith_keyspace(store, "fruit", NULL, &error);
    has(fruit, NULL, "pear", "ripe");
    CHECK(!lsmith_put(fruit, LSMITH_BUFFER, "a", 1, "b", 1, &error));
    FAILED(error, LSMITH_READ_ONLY, "");
    lsmith_keyspace_destroy(fruit);
    lsmith_close(store);
    store = lsmith_open(copy, NULL, &error);
    FINE(error);
    fruit = lsmith_keyspace(store, "fruit", NULL, &error);
    has(fruit, NULL, "cherry", "black");
    lsmith_keyspace_destroy(fruit);
    lsmith_close(store);
    shared(path);
    encrypted(path);
    return 0;
}
