// lsmith for C: an embedded key-value store whose merge policy is chosen. docs/c.md is its guide.
//
// - Handles are made by calls that return a pointer, and given back to the call that destroys them,
//   once. A null handle is an error, or does nothing where there is no place for an error.
// - Keys and values are bytes with a length. A null pointer is allowed where the length is 0.
// - `error` may be null. If a call fails and `*error` is null, `*error` becomes a new error.
//   If it is not null, it stays: after several calls it tells of the first that failed.
// - A store closes when it and all handles made from it are destroyed.
// - Stores, keyspaces, snapshots, policies: any number of threads at once. Batches, iterators,
//   transactions, feeds, errors, pinned values: one thread at a time.
// - RocksDB's C interface gave the names where the meaning is the same. docs/c.md has a table.


#ifndef LSMITH_H
#define LSMITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a change does.
typedef enum {
    // There is no such change.
    LSMITH_NO_CHANGE = 0,
    // A key gets a value.
    LSMITH_PUT = 1,
    // A key is deleted.
    LSMITH_DELETE = 2,
    // All keys from `key` up to `value` are deleted; an empty `value` is no bound.
    LSMITH_DELETE_RANGE = 3,
    // An operand is combined with the value of a key.
    LSMITH_MERGE = 4,
} lsmith_change_kind_t;

// The kind of an error.
typedef enum {
    // The operating system refused an operation.
    LSMITH_IO = 1,
    // The device has no room left. Reads go on; writes work again once there is room.
    LSMITH_FULL = 2,
    // The contents of a file are not what was written to it.
    LSMITH_CORRUPTION = 3,
    // The call broke a rule that its description states.
    LSMITH_INVALID_ARGUMENT = 4,
    // Another process or another handle has the store open.
    LSMITH_LOCKED = 5,
    // Others have changed what a transaction used. Nothing was written. A new one may succeed.
    LSMITH_CONFLICT = 6,
    // A write to a log or the manifest failed earlier. Writes are refused until the store is
    // reopened.
    LSMITH_POISONED = 7,
    // The directory holds no store, or the named keyspace does not exist.
    LSMITH_NOT_FOUND = 8,
    // The log does not hold the changes that were asked for any more.
    LSMITH_GONE = 9,
    // A newer version wrote the files, or they need a policy that is not there.
    LSMITH_UNSUPPORTED = 10,
    // The store was opened for reading only.
    LSMITH_READ_ONLY = 11,
    // A merge policy panicked or answered nonsense, or a thread that merges panicked.
    // `lsmith_retry` tries again.
    LSMITH_PANICKED = 12,
    // Code of the application that the store calls for single keys failed.
    LSMITH_CALLBACK = 13,
    // A call panicked. This is a bug of lsmith; destroy the handles that it used.
    LSMITH_INTERNAL = 14,
} lsmith_error_kind_t;

// A batch of a feed.
typedef struct lsmith_change_batch_t lsmith_change_batch_t;

// A feed of the batches that were written, in their order.
typedef struct lsmith_changes_t lsmith_changes_t;

// Why a call failed.
typedef struct lsmith_error_t lsmith_error_t;

// An iterator over the entries of a keyspace at one moment. It is on an entry, or on none.
typedef struct lsmith_iterator_t lsmith_iterator_t;

// A keyspace (column family): a sorted map from keys to values.
typedef struct lsmith_keyspace_t lsmith_keyspace_t;

// A value that was not copied. It keeps its block or its file mapped until it is destroyed.
typedef struct lsmith_pinned_t lsmith_pinned_t;

// A merge policy (compaction strategy).
typedef struct lsmith_policy_t lsmith_policy_t;

// What several stores of a process share: one limit on their memory, and the threads that merge.
typedef struct lsmith_shared_t lsmith_shared_t;

// What the store held at one moment.
typedef struct lsmith_snapshot_t lsmith_snapshot_t;

// An open store: a directory with keyspaces.
typedef struct lsmith_t lsmith_t;

// An optimistic transaction: its reads and writes are checked when it commits.
typedef struct lsmith_transaction_t lsmith_transaction_t;

// Writes to keyspaces of one store that take effect together.
typedef struct lsmith_writebatch_t lsmith_writebatch_t;

// How far a write must have got when the call returns.
typedef uint32_t lsmith_persist_t;

// A policy that is written in C. Any thread may call it, several at once. It must be pure: the
// same view gets the same plan. It is called under locks of the store: it must not call the store,
// and no exception may leave it.
typedef struct {
    // Given to each call.
    void *state;
    // Writes a plan for the tree in the text `view` to `plan`, which has room for `capacity`
    // bytes. Returns the length of the plan, 0 if no merge is due. If the plan is longer than
    // `capacity`, it is asked again with more room.
    size_t (*next_merge)(void *state, const char *view, size_t viewlen, char *plan, size_t capacity);
    // Called once, when the policy is used no more. May be null.
    void (*destroy)(void *state);
} lsmith_policy_callbacks_t;

// A sorted run.
typedef struct {
    // Logical bytes: of each entry its key, its value and 8.
    uint64_t bytes;
    // The level that the run is in. Older runs are in no lower one.
    uint32_t level;
    // True if a merge that is under way takes the run.
    bool busy;
} lsmith_run_t;

// A policy that is written in C and merges neighbouring whole runs. For its callbacks holds what
// holds for `lsmith_policy_callbacks_t`.
typedef struct {
    // Given to each call.
    void *state;
    // Looks at `count` runs, newest first, of a tree that had `flushes` flushes. To merge the runs
    // from index `from` up to, not including, index `end`, sets both and returns true. Returns
    // false if no merge is due.
    bool (*pick)(void *state,
                 const lsmith_run_t *runs,
                 size_t count,
                 uint64_t flushes,
                 size_t *from,
                 size_t *end);
    // Called once, when the policy is used no more. May be null.
    void (*destroy)(void *state);
} lsmith_pick_callbacks_t;

// What a transaction checks when it commits.
typedef uint32_t lsmith_isolation_t;

// The write survives the death of the process.
#define LSMITH_BUFFER 0

// The write survives power loss.
#define LSMITH_SYNC_DATA 1

// The write survives power loss, with all metadata of the log file.
#define LSMITH_SYNC_ALL 2

// Nobody else has written what it wrote.
#define LSMITH_SNAPSHOT 0

// Nobody else has written what it read or wrote.
#define LSMITH_SERIALIZABLE 1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns an empty batch.
lsmith_writebatch_t *lsmith_writebatch_create(void);

// Destroys a batch. What was not written is forgotten.
void lsmith_writebatch_destroy(lsmith_writebatch_t *batch);

// Adds a value.
bool lsmith_writebatch_put(lsmith_writebatch_t *batch,
                           const lsmith_keyspace_t *keyspace,
                           const char *key,
                           size_t keylen,
                           const char *value,
                           size_t vallen,
                           lsmith_error_t **error);

// Adds a delete.
bool lsmith_writebatch_delete(lsmith_writebatch_t *batch,
                              const lsmith_keyspace_t *keyspace,
                              const char *key,
                              size_t keylen,
                              lsmith_error_t **error);

// Adds a delete of all keys from `start` up to, not including, `end`. A null pointer is no bound.
bool lsmith_writebatch_delete_range(lsmith_writebatch_t *batch,
                                    const lsmith_keyspace_t *keyspace,
                                    const char *start,
                                    size_t startlen,
                                    const char *end,
                                    size_t endlen,
                                    lsmith_error_t **error);

// Returns the number of writes in a batch.
size_t lsmith_writebatch_count(const lsmith_writebatch_t *batch);

// Removes all writes from a batch.
void lsmith_writebatch_clear(lsmith_writebatch_t *batch);

// Writes a batch, at once or not at all. If it is written, it is empty afterwards.
bool lsmith_write(const lsmith_t *store,
                  lsmith_persist_t mode,
                  lsmith_writebatch_t *batch,
                  lsmith_error_t **error);

// Frees what a call returned for the caller to free. It is `free` of the C library.
void lsmith_free(void *start);

// Returns the bytes of a pinned value, and puts their number into `len`.
const char *lsmith_pinned_value(const lsmith_pinned_t *value, size_t *len);

// Destroys a pinned value.
void lsmith_pinned_destroy(lsmith_pinned_t *value);

// Returns a feed of all writes from the sequence number `from` on. The option `changes_bytes` says
// how far back feeds go. Returns null on error.
lsmith_changes_t *lsmith_get_updates_since(const lsmith_t *store,
                                           uint64_t from,
                                           lsmith_error_t **error);

// Destroys a feed.
void lsmith_changes_destroy(lsmith_changes_t *changes);

// Returns the next batch. If there is none yet, waits for one for at most `wait_ms` milliseconds.
// Returns null if there is none then, and on error.
lsmith_change_batch_t *lsmith_changes_next(lsmith_changes_t *changes,
                                           uint64_t wait_ms,
                                           lsmith_error_t **error);

// Returns the sequence number from which a new feed continues this one.
uint64_t lsmith_changes_next_sequence_number(const lsmith_changes_t *changes);

// Returns the number of changes in a batch.
size_t lsmith_change_batch_count(const lsmith_change_batch_t *batch);

// Returns what the change at `index` does. Puts its keyspace, key and value where the caller says;
// they live as long as the batch. The keyspace is `keyspacelen` bytes, without a zero byte.
lsmith_change_kind_t lsmith_change_batch_get(const lsmith_change_batch_t *batch,
                                             size_t index,
                                             const char **keyspace,
                                             size_t *keyspacelen,
                                             const char **key,
                                             size_t *keylen,
                                             const char **value,
                                             size_t *vallen);

// Destroys a batch of a feed.
void lsmith_change_batch_destroy(lsmith_change_batch_t *batch);

// Returns the kind of an error.
lsmith_error_kind_t lsmith_error_kind(const lsmith_error_t *error);

// Returns what happened, where, and the way out, as a text that lives as long as the error.
const char *lsmith_error_message(const lsmith_error_t *error);

// Destroys an error. Set the pointer to null before the next call.
void lsmith_error_destroy(lsmith_error_t *error);

// Returns an iterator over what the keyspace holds at the snapshot `at`, or now if that is null.
// It is on no entry. Returns null on error.
lsmith_iterator_t *lsmith_create_iterator(const lsmith_keyspace_t *keyspace,
                                          const lsmith_snapshot_t *at,
                                          lsmith_error_t **error);

// Returns an iterator over the entries with keys from `start` up to, not including, `end`, as
// `lsmith_create_iterator` does for all. A null pointer is no bound. It never leaves the range,
// and reads nothing beyond it.
lsmith_iterator_t *lsmith_create_range_iterator(const lsmith_keyspace_t *keyspace,
                                                const lsmith_snapshot_t *at,
                                                const char *start,
                                                size_t startlen,
                                                const char *end,
                                                size_t endlen,
                                                lsmith_error_t **error);

// Returns an iterator over the entries whose keys begin with `prefix`, as
// `lsmith_create_range_iterator` does for a range.
lsmith_iterator_t *lsmith_create_prefix_iterator(const lsmith_keyspace_t *keyspace,
                                                 const lsmith_snapshot_t *at,
                                                 const char *prefix,
                                                 size_t prefixlen,
                                                 lsmith_error_t **error);

// Destroys an iterator.
void lsmith_iter_destroy(lsmith_iterator_t *iter);

// Returns true if the iterator is on an entry. If it is not, `lsmith_iter_get_error` tells whether
// the last move failed.
bool lsmith_iter_valid(const lsmith_iterator_t *iter);

// Goes to the first entry.
void lsmith_iter_seek_to_first(lsmith_iterator_t *iter);

// Goes to the last entry.
void lsmith_iter_seek_to_last(lsmith_iterator_t *iter);

// Goes to the first entry whose key is `key` or greater.
void lsmith_iter_seek(lsmith_iterator_t *iter, const char *key, size_t keylen);

// Goes to the last entry whose key is `key` or smaller.
void lsmith_iter_seek_for_prev(lsmith_iterator_t *iter, const char *key, size_t keylen);

// Goes to the next entry. Before the first one, that is the first one.
void lsmith_iter_next(lsmith_iterator_t *iter);

// Goes to the entry before. Behind the last one, that is the last one.
void lsmith_iter_prev(lsmith_iterator_t *iter);

// Returns the key that the iterator is on, valid until the iterator moves, and puts its length
// into `keylen`. Returns null if it is on no entry.
const char *lsmith_iter_key(const lsmith_iterator_t *iter, size_t *keylen);

// Returns the value that the iterator is on, as `lsmith_iter_key` does the key.
const char *lsmith_iter_value(const lsmith_iterator_t *iter, size_t *vallen);

// Tells of the error of the last move, if it failed, and forgets it. After an error the next step
// tries again, or goes on behind the key if the error is one of a single key.
void lsmith_iter_get_error(lsmith_iterator_t *iter, lsmith_error_t **error);

// Destroys the handle.
void lsmith_keyspace_destroy(lsmith_keyspace_t *keyspace);

// Writes a value. Returns true if it was written.
bool lsmith_put(const lsmith_keyspace_t *keyspace,
                lsmith_persist_t mode,
                const char *key,
                size_t keylen,
                const char *value,
                size_t vallen,
                lsmith_error_t **error);

// Deletes a key, present or not.
bool lsmith_delete(const lsmith_keyspace_t *keyspace,
                   lsmith_persist_t mode,
                   const char *key,
                   size_t keylen,
                   lsmith_error_t **error);

// Deletes all keys from `start` up to, not including, `end`. A null pointer is no bound. It is as
// durable as the store's option `persist` says.
bool lsmith_delete_range(const lsmith_keyspace_t *keyspace,
                         const char *start,
                         size_t startlen,
                         const char *end,
                         size_t endlen,
                         lsmith_error_t **error);

// Hands an operand to the keyspace's operator (merge operator), which combines it with the value.
bool lsmith_merge(const lsmith_keyspace_t *keyspace,
                  const char *key,
                  size_t keylen,
                  const char *operand,
                  size_t operandlen,
                  lsmith_error_t **error);

// Returns the value of a key at the snapshot `at`, or now if that is null. Puts its length into
// `vallen`; a zero byte follows the value. The caller frees it. Returns null if the key is absent,
// and on error.
char *lsmith_get(const lsmith_keyspace_t *keyspace,
                 const lsmith_snapshot_t *at,
                 const char *key,
                 size_t keylen,
                 size_t *vallen,
                 lsmith_error_t **error);

// Returns the value of a key without a copy, where files are mapped. Otherwise as `lsmith_get`.
lsmith_pinned_t *lsmith_get_pinned(const lsmith_keyspace_t *keyspace,
                                   const lsmith_snapshot_t *at,
                                   const char *key,
                                   size_t keylen,
                                   lsmith_error_t **error);

// Returns true if the key is present at the snapshot `at`, or now if that is null.
bool lsmith_contains(const lsmith_keyspace_t *keyspace,
                     const lsmith_snapshot_t *at,
                     const char *key,
                     size_t keylen,
                     lsmith_error_t **error);

// Merges all runs that have keys from `start` up to, not including, `end` into one. A null pointer
// is no bound.
bool lsmith_compact_range(const lsmith_keyspace_t *keyspace,
                          const char *start,
                          size_t startlen,
                          const char *end,
                          size_t endlen,
                          lsmith_error_t **error);

// Returns the logical bytes of the entries from `start` up to `end`, roughly.
uint64_t lsmith_approximate_size(const lsmith_keyspace_t *keyspace,
                                 const char *start,
                                 size_t startlen,
                                 const char *end,
                                 size_t endlen,
                                 lsmith_error_t **error);

// Returns about how many keys have a value. Keys that were written again and not merged yet count
// more than once, and deletes of absent keys make the count too small.
uint64_t lsmith_approximate_len(const lsmith_keyspace_t *keyspace, lsmith_error_t **error);

// Returns the spec of the merge policy. The caller frees the text.
char *lsmith_merge_policy(const lsmith_keyspace_t *keyspace, lsmith_error_t **error);

// Changes the merge policy to the one that `spec` describes.
bool lsmith_set_merge_policy(const lsmith_keyspace_t *keyspace,
                             const char *spec,
                             lsmith_error_t **error);

// Changes the merge policy to `policy`.
bool lsmith_use_merge_policy(const lsmith_keyspace_t *keyspace,
                             const lsmith_policy_t *policy,
                             lsmith_error_t **error);

// Returns the tree and what else a policy sees of it, as text. The caller frees it.
char *lsmith_view(const lsmith_keyspace_t *keyspace, lsmith_error_t **error);

// Returns the policy that `spec` describes, such as `tiered(ratio=4)`. Returns null on error.
lsmith_policy_t *lsmith_policy_create(const char *spec, lsmith_error_t **error);

// Returns a policy that asks `callbacks`. Its spec is `name`. It has at most `runs_max` runs at
// rest; 0 stands for no bound. Returns null on error, and does not call `destroy` then.
lsmith_policy_t *lsmith_policy_create_from(const char *name,
                                           uint64_t runs_max,
                                           const lsmith_policy_callbacks_t *callbacks,
                                           lsmith_error_t **error);

// Returns a policy that asks `callbacks`, as `lsmith_policy_create_from`.
lsmith_policy_t *lsmith_policy_create_from_pick(const char *name,
                                                uint64_t runs_max,
                                                const lsmith_pick_callbacks_t *callbacks,
                                                lsmith_error_t **error);

// Destroys the handle. Keyspaces that use the policy go on using it.
void lsmith_policy_destroy(lsmith_policy_t *policy);

// Returns the spec of a policy. The caller frees the text.
char *lsmith_policy_spec(const lsmith_policy_t *policy, lsmith_error_t **error);

// Returns the plan that a policy makes for the tree in the text `view`, or null if no merge is
// due, and on error. The caller frees the text. `lsmith_view` shows what views look like.
char *lsmith_policy_next_merge(const lsmith_policy_t *policy,
                               const char *view,
                               size_t viewlen,
                               lsmith_error_t **error);

// Asks a policy about `count` runs of a store that is not lsmith's, newest first. Its memtables
// have `memtable_bytes`, and it made `flushes` flushes so far. If a merge is due, sets the three
// places and returns true: the runs from index `from` up to, not including, `end` become one run
// of `level`. Returns false if none is due or one of these runs is busy, and on error: also if the
// policy asks for something else, as policies that merge parts of runs do.
bool lsmith_policy_pick(const lsmith_policy_t *policy,
                        const lsmith_run_t *runs,
                        size_t count,
                        uint64_t memtable_bytes,
                        uint64_t flushes,
                        size_t *from,
                        size_t *end,
                        uint32_t *level,
                        lsmith_error_t **error);

// Returns true if a policy decides about the runs of a store that is not lsmith's, as
// `lsmith_policy_pick` asks. Such a store has no key ranges, tombstones or reads to show, and it
// merges neighbouring whole runs. The error says what else the policy needs.
bool lsmith_policy_check_pick(const lsmith_policy_t *policy, lsmith_error_t **error);

// Tries a policy on many trees. Returns true if it keeps all laws of policies. The error says
// which law it broke on which tree.
bool lsmith_policy_check(const lsmith_policy_t *policy, lsmith_error_t **error);

// Returns what stores share: a limit of `memory_bytes` on the memory of all of them together, or
// none if that is 0, and `threads` threads that merge for all, or threads of their own if that is
// 0. Returns null on error.
lsmith_shared_t *lsmith_shared_create(uint64_t memory_bytes,
                                      size_t threads,
                                      lsmith_error_t **error);

// Destroys the handle. Stores that were opened with it keep what they share.
void lsmith_shared_destroy(lsmith_shared_t *shared);

// Returns the bytes that all stores with this limit hold in memory now; 0 without a limit.
uint64_t lsmith_shared_memory(const lsmith_shared_t *shared);

// Returns what the store holds now.
lsmith_snapshot_t *lsmith_create_snapshot(const lsmith_t *store, lsmith_error_t **error);

// Destroys a snapshot. Until then the store keeps what it shows.
void lsmith_release_snapshot(lsmith_snapshot_t *snapshot);

// Returns the sequence number of the newest write that a snapshot shows.
uint64_t lsmith_snapshot_get_sequence_number(const lsmith_snapshot_t *snapshot);

// Opens the store in the directory `path`, or makes one. `options` is null or a text such as
// `memtable_bytes=64MiB, policy=tiered(ratio=4)`; docs/c.md has all names. Returns null on error.
lsmith_t *lsmith_open(const char *path, const char *options, lsmith_error_t **error);

// Opens the store in the directory `path`, or makes one, with the memory and the threads that
// `shared` has for several stores. `options` cannot have `memory_bytes` or `cache_bytes` then.
// Returns null on error.
lsmith_t *lsmith_open_shared(const char *path,
                             const char *options,
                             const lsmith_shared_t *shared,
                             lsmith_error_t **error);

// Opens the store in the directory `path`, or makes one, with `policy` as the policy of new
// keyspaces, and of keyspaces that had a policy of its name. Returns null on error.
lsmith_t *lsmith_open_with_policy(const char *path,
                                  const char *options,
                                  const lsmith_policy_t *policy,
                                  lsmith_error_t **error);

// Destroys the handle. The store closes when no keyspace, batch, iterator, snapshot, transaction
// or feed of it is left.
void lsmith_close(lsmith_t *store);

// Returns the keyspace (column family) `name`, which is made if it is missing. `options` is null
// or a text such as `policy=leveled(ratio=8), prefix_bytes=8`. Returns null on error.
lsmith_keyspace_t *lsmith_keyspace(const lsmith_t *store,
                                   const char *name,
                                   const char *options,
                                   lsmith_error_t **error);

// Removes the keyspace `name` with all that it holds.
bool lsmith_drop_keyspace(const lsmith_t *store, const char *name, lsmith_error_t **error);

// Returns the names of all keyspaces, one on each line. The caller frees the text.
char *lsmith_list_keyspaces(const lsmith_t *store, lsmith_error_t **error);

// Makes all writes so far survive what `mode` says.
bool lsmith_flush_wal(const lsmith_t *store, lsmith_persist_t mode, lsmith_error_t **error);

// Seals and flushes the memtables of all keyspaces.
bool lsmith_flush(const lsmith_t *store, lsmith_error_t **error);

// Waits until no merge (compaction) is due.
bool lsmith_wait_for_compact(const lsmith_t *store, lsmith_error_t **error);

// Has work tried again that failed in the background.
void lsmith_retry(const lsmith_t *store);

// Makes a copy of the store, as it is now, in the new directory `path`. Files are linked where
// that can be done.
bool lsmith_checkpoint_create(const lsmith_t *store, const char *path, lsmith_error_t **error);

// Looks for damage in all files. Returns the number of damaged places; the error tells of the
// first of them.
size_t lsmith_verify(const lsmith_t *store, lsmith_error_t **error);

// Returns what the store tells of itself. The caller frees the text. `stats`: all counts since the
// store was opened, a name and a number on each line. `memory`: the bytes that it holds in memory,
// by part, and their limit.
char *lsmith_property_value(const lsmith_t *store, const char *name, lsmith_error_t **error);

// Begins a transaction. Returns null on error.
lsmith_transaction_t *lsmith_transaction_begin(const lsmith_t *store,
                                               lsmith_isolation_t isolation,
                                               lsmith_error_t **error);

// Commits and destroys a transaction. Returns true if its writes took effect. `LSMITH_CONFLICT`
// says that others were faster: begin a new one.
bool lsmith_transaction_commit(lsmith_transaction_t *transaction,
                               lsmith_persist_t mode,
                               lsmith_error_t **error);

// Destroys a transaction without a write.
void lsmith_transaction_rollback(lsmith_transaction_t *transaction);

// Returns the value of a key as the transaction sees it, or null if it is absent, and on error.
lsmith_pinned_t *lsmith_transaction_get(lsmith_transaction_t *transaction,
                                        const lsmith_keyspace_t *keyspace,
                                        const char *key,
                                        size_t keylen,
                                        lsmith_error_t **error);

// As `lsmith_transaction_get`, and the commit fails if others write the key before.
lsmith_pinned_t *lsmith_transaction_get_for_update(lsmith_transaction_t *transaction,
                                                   const lsmith_keyspace_t *keyspace,
                                                   const char *key,
                                                   size_t keylen,
                                                   lsmith_error_t **error);

// Writes a value in the transaction.
bool lsmith_transaction_put(lsmith_transaction_t *transaction,
                            const lsmith_keyspace_t *keyspace,
                            const char *key,
                            size_t keylen,
                            const char *value,
                            size_t vallen,
                            lsmith_error_t **error);

// Deletes a key in the transaction.
bool lsmith_transaction_delete(lsmith_transaction_t *transaction,
                               const lsmith_keyspace_t *keyspace,
                               const char *key,
                               size_t keylen,
                               lsmith_error_t **error);

// Deletes a range of keys in the transaction. A null pointer is no bound.
bool lsmith_transaction_delete_range(lsmith_transaction_t *transaction,
                                     const lsmith_keyspace_t *keyspace,
                                     const char *start,
                                     size_t startlen,
                                     const char *end,
                                     size_t endlen,
                                     lsmith_error_t **error);

// Marks a place to return to.
void lsmith_transaction_set_savepoint(lsmith_transaction_t *transaction);

// Forgets the writes since the last savepoint, and the savepoint.
bool lsmith_transaction_rollback_to_savepoint(lsmith_transaction_t *transaction,
                                              lsmith_error_t **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LSMITH_H */
