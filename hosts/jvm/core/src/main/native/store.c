// Glue of lsmith.Shared, lsmith.Store and lsmith.Scan. What Java hands over is copied: a write may
// wait for merges, and the collector must not wait for it.
#include "common.h"

// Keys and values up to this many bytes are copied to the stack.
#define SMALL 1024

// Bytes that were copied from an array.
typedef struct {
    char *start;
    size_t len;
    bool is_on_heap;
} copied_t;

// Copies an array to `small`, or to the heap. A null array becomes a null pointer. Returns false if
// there is no memory; then an exception is pending.
static bool copy_in(JNIEnv *env, jbyteArray array, char *small, copied_t *copied) {
    *copied = (copied_t){NULL, 0, false};
    if (!array) {
        return true;
    }
    copied->len = (size_t)(*env)->GetArrayLength(env, array);
    copied->is_on_heap = copied->len > SMALL;
    copied->start = copied->is_on_heap ? malloc(copied->len) : small;
    if (!copied->start) {
        throw_no_memory(env);
        return false;
    }
    (*env)->GetByteArrayRegion(env, array, 0, (jsize)copied->len, (jbyte *)copied->start);
    return true;
}

static void let_go(copied_t *copied) {
    if (copied->is_on_heap) {
        free(copied->start);
    }
}

JNIEXPORT jlong JNICALL Java_lsmith_Shared_create(JNIEnv *env, jclass class, jlong memory_bytes,
                                                  jint threads) {
    (void)class;
    lsmith_error_t *error = NULL;
    lsmith_shared_t *shared = lsmith_shared_create((uint64_t)memory_bytes, (size_t)threads, &error);
    throw_error(env, error);
    return to_java(shared);
}

JNIEXPORT void JNICALL Java_lsmith_Shared_destroyShared(JNIEnv *env, jclass class, jlong shared) {
    (void)env;
    (void)class;
    lsmith_shared_destroy(FROM_JAVA(lsmith_shared_t, shared));
}

JNIEXPORT jlong JNICALL Java_lsmith_Shared_memory(JNIEnv *env, jclass class, jlong shared) {
    (void)env;
    (void)class;
    return (jlong)lsmith_shared_memory(FROM_JAVA(lsmith_shared_t, shared));
}

// A store and its one keyspace.
typedef struct {
    lsmith_t *store;
    lsmith_keyspace_t *keyspace;
} opened_t;

static void close_opened(opened_t *opened) {
    if (opened) {
        lsmith_keyspace_destroy(opened->keyspace);
        lsmith_close(opened->store);
        free(opened);
    }
}

JNIEXPORT jlong JNICALL Java_lsmith_Store_open(JNIEnv *env, jclass class, jbyteArray path,
                                               jbyteArray options, jlong shared) {
    (void)class;
    char *path_text = copy_bytes(env, path, NULL);
    char *options_text = path_text ? copy_bytes(env, options, NULL) : NULL;
    opened_t *opened = options_text ? calloc(1, sizeof *opened) : NULL;
    if (opened) {
        lsmith_error_t *error = NULL;
        opened->store = shared ? lsmith_open_shared(path_text, options_text,
                                                    FROM_JAVA(lsmith_shared_t, shared), &error)
                               : lsmith_open(path_text, options_text, &error);
        if (opened->store) {
            opened->keyspace = lsmith_keyspace(opened->store, "default", NULL, &error);
        }
        if (!opened->keyspace) {
            close_opened(opened);
            opened = NULL;
        }
        throw_error(env, error);
    } else if (options_text) {
        throw_no_memory(env);
    }
    free(options_text);
    free(path_text);
    return to_java(opened);
}

JNIEXPORT void JNICALL Java_lsmith_Store_destroyStore(JNIEnv *env, jclass class, jlong store) {
    (void)env;
    (void)class;
    close_opened(FROM_JAVA(opened_t, store));
}

JNIEXPORT void JNICALL Java_lsmith_Store_put(JNIEnv *env, jclass class, jlong store,
                                             jbyteArray key, jbyteArray value) {
    (void)class;
    char small_key[SMALL], small_value[SMALL];
    copied_t k, v;
    if (!copy_in(env, key, small_key, &k)) {
        return;
    }
    if (copy_in(env, value, small_value, &v)) {
        lsmith_error_t *error = NULL;
        lsmith_keyspace_t *keyspace = FROM_JAVA(opened_t, store)->keyspace;
        lsmith_put(keyspace, LSMITH_BUFFER, k.start, k.len, v.start, v.len, &error);
        throw_error(env, error);
        let_go(&v);
    }
    let_go(&k);
}

JNIEXPORT void JNICALL Java_lsmith_Store_delete(JNIEnv *env, jclass class, jlong store,
                                                jbyteArray key) {
    (void)class;
    char small[SMALL];
    copied_t k;
    if (copy_in(env, key, small, &k)) {
        lsmith_error_t *error = NULL;
        lsmith_keyspace_t *keyspace = FROM_JAVA(opened_t, store)->keyspace;
        lsmith_delete(keyspace, LSMITH_BUFFER, k.start, k.len, &error);
        throw_error(env, error);
        let_go(&k);
    }
}

JNIEXPORT void JNICALL Java_lsmith_Store_deleteRange(JNIEnv *env, jclass class, jlong store,
                                                     jbyteArray from, jbyteArray to) {
    (void)class;
    char small_from[SMALL], small_to[SMALL];
    copied_t f, t;
    if (!copy_in(env, from, small_from, &f)) {
        return;
    }
    if (copy_in(env, to, small_to, &t)) {
        lsmith_error_t *error = NULL;
        lsmith_keyspace_t *keyspace = FROM_JAVA(opened_t, store)->keyspace;
        lsmith_delete_range(keyspace, f.start, f.len, t.start, t.len, &error);
        throw_error(env, error);
        let_go(&t);
    }
    let_go(&f);
}

JNIEXPORT jbyteArray JNICALL Java_lsmith_Store_get(JNIEnv *env, jclass class, jlong store,
                                                   jbyteArray key) {
    (void)class;
    char small[SMALL];
    copied_t k;
    if (!copy_in(env, key, small, &k)) {
        return NULL;
    }
    lsmith_error_t *error = NULL;
    lsmith_keyspace_t *keyspace = FROM_JAVA(opened_t, store)->keyspace;
    lsmith_pinned_t *value = lsmith_get_pinned(keyspace, NULL, k.start, k.len, &error);
    let_go(&k);
    if (throw_error(env, error) || !value) {
        return NULL;
    }
    size_t len = 0;
    const char *start = lsmith_pinned_value(value, &len);
    jbyteArray bytes = new_bytes(env, start, len);
    lsmith_pinned_destroy(value);
    return bytes;
}

// Writes operations, which lie one behind the other: a byte (1 put, 0 delete), the lengths of key
// and value as big-endian ints, the key, the value. Java's Batch makes them.
JNIEXPORT void JNICALL Java_lsmith_Store_write(JNIEnv *env, jclass class, jlong store,
                                               jbyteArray ops, jint len) {
    (void)class;
    unsigned char *copy = malloc((size_t)len + 1);
    lsmith_writebatch_t *batch = copy ? lsmith_writebatch_create() : NULL;
    if (!batch) {
        free(copy);
        throw_no_memory(env);
        return;
    }
    (*env)->GetByteArrayRegion(env, ops, 0, len, (jbyte *)copy);
    opened_t *opened = FROM_JAVA(opened_t, store);
    lsmith_error_t *error = NULL;
    const unsigned char *at = copy;
    while (at < copy + len && !error) {
        size_t keylen = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
        size_t vallen = (size_t)at[5] << 24 | (size_t)at[6] << 16 | (size_t)at[7] << 8 | at[8];
        const char *key = (const char *)at + 9;
        if (at[0]) {
            lsmith_writebatch_put(batch, opened->keyspace, key, keylen, key + keylen, vallen,
                                  &error);
        } else {
            lsmith_writebatch_delete(batch, opened->keyspace, key, keylen, &error);
        }
        at += 9 + keylen + vallen;
    }
    if (!error) {
        lsmith_write(opened->store, LSMITH_BUFFER, batch, &error);
    }
    lsmith_writebatch_destroy(batch);
    free(copy);
    throw_error(env, error);
}

JNIEXPORT void JNICALL Java_lsmith_Store_sync(JNIEnv *env, jclass class, jlong store) {
    (void)class;
    lsmith_error_t *error = NULL;
    lsmith_flush_wal(FROM_JAVA(opened_t, store)->store, LSMITH_SYNC_DATA, &error);
    throw_error(env, error);
}

JNIEXPORT jlong JNICALL Java_lsmith_Store_approximateLen(JNIEnv *env, jclass class, jlong store) {
    (void)class;
    lsmith_error_t *error = NULL;
    uint64_t len = lsmith_approximate_len(FROM_JAVA(opened_t, store)->keyspace, &error);
    throw_error(env, error);
    return (jlong)len;
}

JNIEXPORT jbyteArray JNICALL Java_lsmith_Store_property(JNIEnv *env, jclass class, jlong store,
                                                        jbyteArray name) {
    (void)class;
    char *text = copy_bytes(env, name, NULL);
    if (!text) {
        return NULL;
    }
    lsmith_error_t *error = NULL;
    char *told = lsmith_property_value(FROM_JAVA(opened_t, store)->store, text, &error);
    free(text);
    throw_error(env, error);
    jbyteArray bytes = told ? new_bytes(env, told, strlen(told)) : NULL;
    lsmith_free(told);
    return bytes;
}

JNIEXPORT jlong JNICALL Java_lsmith_Store_scan(JNIEnv *env, jclass class, jlong store,
                                               jbyteArray from, jbyteArray to) {
    (void)class;
    char small_from[SMALL], small_to[SMALL];
    copied_t f, t;
    if (!copy_in(env, from, small_from, &f)) {
        return 0;
    }
    lsmith_iterator_t *iter = NULL;
    if (copy_in(env, to, small_to, &t)) {
        lsmith_error_t *error = NULL;
        lsmith_keyspace_t *keyspace = FROM_JAVA(opened_t, store)->keyspace;
        iter = lsmith_create_range_iterator(keyspace, NULL, f.start, f.len, t.start, t.len, &error);
        throw_error(env, error);
        let_go(&t);
    }
    let_go(&f);
    return to_java(iter);
}

JNIEXPORT void JNICALL Java_lsmith_Scan_destroyScan(JNIEnv *env, jclass class, jlong scan) {
    (void)env;
    (void)class;
    lsmith_iter_destroy(FROM_JAVA(lsmith_iterator_t, scan));
}

static void put_int(char *at, size_t number) {
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(number >> (24 - 8 * i));
    }
}

// Returns the next entries, about as many bytes as asked for, at least one entry: the lengths of
// key and value as big-endian ints, the key, the value. Returns null behind the last one.
JNIEXPORT jbyteArray JNICALL Java_lsmith_Scan_next(JNIEnv *env, jclass class, jlong scan,
                                                   jboolean begins, jboolean backward,
                                                   jint wanted) {
    (void)class;
    lsmith_iterator_t *iter = FROM_JAVA(lsmith_iterator_t, scan);
    char *entries = NULL;
    size_t len = 0, room = 0;
    while (len < (size_t)wanted) {
        if (begins) {
            backward ? lsmith_iter_seek_to_last(iter) : lsmith_iter_seek_to_first(iter);
            begins = false;
        } else {
            backward ? lsmith_iter_prev(iter) : lsmith_iter_next(iter);
        }
        lsmith_error_t *error = NULL;
        lsmith_iter_get_error(iter, &error);
        if (throw_error(env, error)) {
            free(entries);
            return NULL;
        }
        if (!lsmith_iter_valid(iter)) {
            break;
        }
        size_t keylen, vallen;
        const char *key = lsmith_iter_key(iter, &keylen);
        const char *value = lsmith_iter_value(iter, &vallen);
        size_t needed = len + 8 + keylen + vallen;
        if (needed > room) {
            room = needed > (size_t)wanted ? needed : (size_t)wanted;
            char *larger = realloc(entries, room);
            if (!larger) {
                free(entries);
                throw_no_memory(env);
                return NULL;
            }
            entries = larger;
        }
        put_int(entries + len, keylen);
        put_int(entries + len + 4, vallen);
        memcpy(entries + len + 8, key, keylen);
        memcpy(entries + len + 8 + keylen, value, vallen);
        len = needed;
    }
    jbyteArray bytes = entries ? new_bytes(env, entries, len) : NULL;
    free(entries);
    return bytes;
}
