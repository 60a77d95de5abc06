// A policy that plans nonsense, through the C interface, under the names `hostile` and
// `hostile_picks`. The library of the tests has it; other names are lsmith's own policies.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsmith.h"

static atomic_uint calls;

// Returns the highest number of a run in the view. Runs are called r1, r2 and so on.
static unsigned count_runs(const char *view, size_t len) {
    unsigned count = 0;
    for (size_t at = 0; at + 2 < len; at++) {
        if (view[at] == ' ' && view[at + 1] == 'r') {
            unsigned number = (unsigned)strtoul(view + at + 2, NULL, 10);
            count = number > count ? number : count;
        }
    }
    return count;
}

static size_t plan_nonsense(void *state, const char *view, size_t viewlen, char *plan,
                            size_t capacity) {
    (void)state;
    unsigned call = atomic_fetch_add(&calls, 1);
    unsigned count = count_runs(view, viewlen);
    unsigned run = count ? 1 + call * 7919u % count : 1;
    int len = 0;
    switch (call % 14) {
    case 0: // neighbours, but in no order of size or age
        len = snprintf(plan, capacity, "merge r%u r%u over .. into new run at L%u", run + 1, run,
                       call % 40);
        break;
    case 1: // runs that are far apart
        len = snprintf(plan, capacity, "merge r%u r1 over .. in place", count);
        break;
    case 2: // a run that is not there
        len = snprintf(plan, capacity, "merge r%u r%u over .. in place", count + 9, count);
        break;
    case 3:
        len = snprintf(plan, capacity, "drop r%u over ..", run);
        break;
    case 4: // one run, again and again
        len = snprintf(plan, capacity, "merge r%u over .. in place", run);
        break;
    case 5:
        len = snprintf(plan, capacity, "merge r%u:a..b r%u:a..b over a..b in place", run + 1, run);
        break;
    case 6:
        len = snprintf(plan, capacity, "move r%u over .. into new run at L3", run);
        break;
    case 7: // older before newer
        len = snprintf(plan, capacity, "merge r%u r%u over .. in place", run, run + 1);
        break;
    case 8:
        len = snprintf(plan, capacity, "merge r%u r%u over .. in place", run, run);
        break;
    case 9: // no text
        memset(plan, 0xff, 100);
        return 100;
    case 10: // longer at each call
        return capacity + 1;
    case 11: // a level that is not there, and much to remember
        len = snprintf(plan, capacity, "merge r%u r%u over .. into new run at L9999 note a=b",
                       run + 1, run);
        break;
    case 12: // all runs
        len = snprintf(plan, capacity, "merge");
        for (unsigned each = count; each > 0 && (size_t)len + 40 < capacity; each--) {
            len += snprintf(plan + len, capacity - (size_t)len, " r%u", each);
        }
        len += snprintf(plan + len, capacity - (size_t)len, " over .. into new run at L1");
        break;
    default:
        return 0;
    }
    return (size_t)len;
}

static bool pick_nonsense(void *state, const lsmith_run_t *runs, size_t count, uint64_t flushes,
                          size_t *from, size_t *end) {
    (void)state;
    (void)runs;
    unsigned call = atomic_fetch_add(&calls, 1);
    *from = (call * 7919u + flushes) % (count + 3);
    *end = call % 5 ? *from + 2 : call % 7;
    return call % 6 != 0;
}

lsmith_policy_t *hostile_policy_create(const char *spec, lsmith_error_t **error) {
    if (strcmp(spec, "hostile") == 0) {
        lsmith_policy_callbacks_t callbacks = {.next_merge = plan_nonsense};
        return lsmith_policy_create_from(spec, 0, &callbacks, error);
    }
    if (strcmp(spec, "hostile_picks") == 0) {
        lsmith_pick_callbacks_t callbacks = {.pick = pick_nonsense};
        return lsmith_policy_create_from_pick(spec, 0, &callbacks, error);
    }
    return lsmith_policy_create(spec, error);
}
