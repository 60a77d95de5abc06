// What all glue between Java and lsmith.h shares: errors become exceptions, handles are longs.
#ifndef LSMITH_COMMON_H
#define LSMITH_COMMON_H

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lsmith.h"

// A handle as Java keeps it. 0 is no handle.
static inline jlong to_java(const void *handle) {
    return (jlong)(intptr_t)handle;
}

// A handle from Java. Java code sees to it that it is open.
#define FROM_JAVA(type, handle) ((type *)(intptr_t)(handle))

// Makes the exception of an error, with its kind and message, pending, and destroys the error.
// Does nothing if there is no error. Returns true if there was one.
static inline bool throw_error(JNIEnv *env, lsmith_error_t *error) {
    if (!error) {
        return false;
    }
    const char *message = lsmith_error_message(error);
    jsize len = (jsize)strlen(message);
    jclass class = (*env)->FindClass(env, "lsmith/LsmithException");
    jmethodID make = class ? (*env)->GetMethodID(env, class, "<init>", "(I[B)V") : NULL;
    jbyteArray bytes = make ? (*env)->NewByteArray(env, len) : NULL;
    if (bytes) {
        (*env)->SetByteArrayRegion(env, bytes, 0, len, (const jbyte *)message);
        jobject exception =
            (*env)->NewObject(env, class, make, (jint)lsmith_error_kind(error), bytes);
        if (exception) {
            (*env)->Throw(env, (jthrowable)exception);
        }
    }
    // If a step failed, its own exception is pending: there was no memory for ours.
    lsmith_error_destroy(error);
    return true;
}

// Makes an OutOfMemoryError pending.
static inline void throw_no_memory(JNIEnv *env) {
    jclass class = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
    if (class) {
        (*env)->ThrowNew(env, class, "no memory outside the heap");
    }
}

// Returns the bytes of an array with a zero byte behind them, for the caller to free. Null if
// there is no memory; then an exception is pending.
static inline char *copy_bytes(JNIEnv *env, jbyteArray array, size_t *len) {
    jsize count = (*env)->GetArrayLength(env, array);
    char *copy = malloc((size_t)count + 1);
    if (!copy) {
        throw_no_memory(env);
        return NULL;
    }
    (*env)->GetByteArrayRegion(env, array, 0, count, (jbyte *)copy);
    copy[count] = 0;
    if (len) {
        *len = (size_t)count;
    }
    return copy;
}

// Returns a Java array of bytes. Null if there is no memory; then an exception is pending.
static inline jbyteArray new_bytes(JNIEnv *env, const char *start, size_t len) {
    if (len > INT32_MAX) {
        throw_no_memory(env);
        return NULL;
    }
    jbyteArray array = (*env)->NewByteArray(env, (jsize)len);
    if (array) {
        (*env)->SetByteArrayRegion(env, array, 0, (jsize)len, (const jbyte *)start);
    }
    return array;
}

#endif
