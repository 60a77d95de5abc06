// Policies that are written in C: by picks and by texts, good ones and wrong ones; and lsmith's
// policies asked about runs of another store.
#include "lsmith.h"
#include "check.h"

static lsmith_error_t *error = NULL;

// Merges the two newest neighbours of which the newer has at least half of the older's bytes.
static bool halves(void *state, const lsmith_run_t *runs, size_t count, uint64_t flushes,
                   size_t *from, size_t *end) {
    (void)state;
    (void)flushes;
    for (size_t index = 0; index + 1 < count; index++) {
        if (runs[index].bytes * 2 >= runs[index + 1].bytes) {
            *from = index;
            *end = index + 2;
            return true;
        }
    }
    return false;
}

static bool beyond(void *state, const lsmith_run_t *runs, size_t count, uint64_t flushes,
                   size_t *from, size_t *end) {
    (void)state;
    (void)runs;
    (void)flushes;
    *from = count;
    *end = count + 2;
    return true;
}

// No merge is ever due.
static size_t nothing(void *state, const char *view, size_t viewlen, char *plan, size_t capacity) {
    (void)state;
    (void)plan;
    (void)capacity;
    CHECK(viewlen > 4 && memcmp(view, "view", 4) == 0);
    return 0;
}

// A text that is longer than any place that was asked for before.
static size_t chatter(void *state, const char *view, size_t viewlen, char *plan, size_t capacity) {
    (void)state;
    (void)view;
    (void)viewlen;
    size_t len = 5000;
    memset(plan, 'x', capacity < len ? capacity : len);
    return len;
}

static void count_down(void *state) {
    *(int *)state -= 1;
}

static void fill(lsmith_keyspace_t *keyspace) {
    char key[32], value[100] = {0};
    for (int number = 0; number < 4000; number++) {
        snprintf(key, sizeof key, "%08d", number * 7919 % 4000);
        lsmith_put(keyspace, LSMITH_BUFFER, key, 8, value, sizeof value, &error);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/store", argv[1]);
    int alive = 1;
    lsmith_pick_callbacks_t picks = {&alive, halves, count_down};
    lsmith_policy_t *own = lsmith_policy_create_from_pick("halves", 65, &picks, &error);
    FINE(error);
    // All laws of policies hold.
    CHECK(lsmith_policy_check(own, &error));
    FINE(error);

    CHECK(!lsmith_open_with_policy(path, "policy=none", own, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected no option `policy`");
    lsmith_t *store = lsmith_open_with_policy(path, "memtable_bytes=16KiB", own, &error);
    lsmith_keyspace_t *keyspace = lsmith_keyspace(store, "own", NULL, &error);
    fill(keyspace);
    CHECK(lsmith_flush(store, &error) && lsmith_wait_for_compact(store, &error));
    FINE(error);
    char *text = lsmith_merge_policy(keyspace, &error);
    CHECK(strcmp(text, "halves") == 0);
    lsmith_free(text);
    // The store's tree is at rest under the policy.
    char *view = lsmith_view(keyspace, &error);
    CHECK(lsmith_policy_next_merge(own, view, strlen(view), &error) == NULL);
    lsmith_policy_t *constant = lsmith_policy_create("constant(k=1)", &error);
    char *plan = lsmith_policy_next_merge(constant, view, strlen(view), &error);
    CHECK(plan && strncmp(plan, "merge r", 7) == 0);
    lsmith_free(plan);
    lsmith_free(view);
    CHECK(lsmith_use_merge_policy(keyspace, constant, &error));
    CHECK(lsmith_wait_for_compact(store, &error));
    CHECK(lsmith_use_merge_policy(keyspace, own, &error));
    FINE(error);
    lsmith_policy_destroy(constant);
    lsmith_keyspace_destroy(keyspace);
    lsmith_close(store);

    // The store knows the policy again by its name, and opens without it no more.
    CHECK(lsmith_open(path, NULL, &error) == NULL);
    FAILED(error, LSMITH_UNSUPPORTED, "halves");
    store = lsmith_open_with_policy(path, NULL, own, &error);
    FINE(error);
    lsmith_close(store);
    CHECK(alive == 1);
    lsmith_policy_destroy(own);
    CHECK(alive == 0);

    // Runs of another store, newest first.
    lsmith_run_t runs[] = {
        {10, 0, false}, {10, 0, false}, {10, 0, false}, {10, 0, false}, {400, 2, false}};
    size_t from = 9, end = 9;
    uint32_t level = 9;
    lsmith_policy_t *tiered = lsmith_policy_create("tiered(ratio=4)", &error);
    CHECK(lsmith_policy_pick(tiered, runs, 5, 10, 44, &from, &end, &level, &error));
    CHECK(from == 0 && end == 4 && level == 1);
    runs[2].busy = true;
    CHECK(!lsmith_policy_pick(tiered, runs, 5, 10, 44, &from, &end, &level, &error));
    CHECK(!lsmith_policy_pick(tiered, runs + 1, 4, 10, 43, &from, &end, &level, &error));
    CHECK(!lsmith_policy_pick(tiered, NULL, 0, 10, 0, &from, &end, &level, &error));
    FINE(error);
    CHECK(!lsmith_policy_pick(tiered, NULL, 2, 10, 0, &from, &end, &level, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "null");
    runs[2].busy = false;
    CHECK(!lsmith_policy_pick(tiered, runs, 5, 10, 44, NULL, &end, &level, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "`from`");
    runs[3].level = 7;
    CHECK(!lsmith_policy_pick(tiered, runs, 5, 10, 44, &from, &end, &level, &error));
    FAILED(error, LSMITH_INVALID_ARGUMENT, "in a lower level");
    runs[3].level = 0;
    text = lsmith_policy_spec(tiered, &error);
    CHECK(strncmp(text, "tiered(", 7) == 0);
    lsmith_free(text);
    CHECK(lsmith_policy_next_merge(tiered, "tree?", 5, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "expected the text of a view");
    lsmith_policy_destroy(tiered);

    // What policies need that other stores do not have.
    const char *needs[][2] = {
        {"tiered(ratio=4)", NULL}, {"minlatency(k=4)", NULL}, {"auto(runs=8, largest=5GB)", NULL},
        {"leveled(ratio=8)", "which merges key ranges"}, {"sweep", "which merges key ranges"},
        {"jungle", "which appends to tables"}, {"fifo", "which drops runs unread"},
        {"test_mixed", "which counts data blocks"},
        {"auto(price=reads)", "which reads how often the tree is read"},
        {"auto(deletes_within=1GB)", "which reads the age of deletes"}};
    for (size_t index = 0; index < sizeof needs / sizeof needs[0]; index++) {
        lsmith_policy_t *policy = lsmith_policy_create(needs[index][0], &error);
        FINE(error);
        CHECK(lsmith_policy_check_pick(policy, &error) == !needs[index][1]);
        if (needs[index][1]) {
            FAILED(error, LSMITH_INVALID_ARGUMENT, needs[index][1]);
        }
        lsmith_policy_destroy(policy);
    }
    FINE(error);

    // Policies that answer nonsense. The store goes on: it says so, and keeps what it has.
    lsmith_policy_callbacks_t idle = {NULL, nothing, NULL}, talks = {NULL, chatter, NULL};
    lsmith_policy_t *wrong = lsmith_policy_create_from("chatter", 0, &talks, &error);
    CHECK(!lsmith_policy_check(wrong, &error));
    CHECK(error && lsmith_error_kind(error) != LSMITH_INTERNAL);
    lsmith_error_destroy(error);
    error = NULL;
    const char *empty = "view memtable 1kB\ntree";
    CHECK(lsmith_policy_next_merge(wrong, empty, strlen(empty), &error) == NULL);
    FAILED(error, LSMITH_PANICKED, "policy `chatter`: expected a plan, found `xxx");
    CHECK(!lsmith_policy_pick(wrong, runs, 5, 10, 44, &from, &end, &level, &error));
    FAILED(error, LSMITH_PANICKED, "chatter");
    lsmith_policy_destroy(wrong);
    picks.state = NULL;
    picks.pick = beyond;
    picks.destroy = NULL;
    wrong = lsmith_policy_create_from_pick("beyond", 4, &picks, &error);
    store = lsmith_open(path, NULL, &error);
    FAILED(error, LSMITH_UNSUPPORTED, "halves");
    snprintf(path, sizeof path, "%s/wrong", argv[1]);
    store = lsmith_open_with_policy(path, "memtable_bytes=16KiB, lockstep=true", wrong, &error);
    FINE(error);
    keyspace = lsmith_keyspace(store, "own", NULL, &error);
    FINE(error);
    fill(keyspace);
    CHECK(error != NULL && strstr(lsmith_error_message(error), "beyond"));
    lsmith_error_destroy(error);
    error = NULL;
    char *value = lsmith_get(keyspace, NULL, "00000000", 8, NULL, &error);
    FINE(error);
    CHECK(value != NULL);
    lsmith_free(value);
    lsmith_policy_t *rests = lsmith_policy_create_from("idle", 0, &idle, &error);
    FINE(error);
    CHECK(lsmith_use_merge_policy(keyspace, rests, &error));
    lsmith_retry(store);
    fill(keyspace);
    FINE(error);
    lsmith_policy_destroy(rests);
    lsmith_policy_destroy(wrong);
    lsmith_keyspace_destroy(keyspace);
    lsmith_close(store);

    CHECK(lsmith_policy_create_from("tiered", 4, &idle, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "that no policy has");
    CHECK(lsmith_policy_create_from("Two Words", 4, &idle, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "Two Words");
    CHECK(lsmith_policy_create_from("own", 4, NULL, &error) == NULL);
    FAILED(error, LSMITH_INVALID_ARGUMENT, "callbacks");
    return 0;
}
