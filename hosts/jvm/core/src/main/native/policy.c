// Glue of lsmith.Policy. Texts are arrays of UTF-8, because JNI's own strings are not UTF-8.
#include "common.h"

// Returns a text as bytes and frees it. Null stays null.
static jbyteArray to_bytes(JNIEnv *env, char *text) {
    jbyteArray bytes = text ? new_bytes(env, text, strlen(text)) : NULL;
    lsmith_free(text);
    return bytes;
}

JNIEXPORT jlong JNICALL Java_lsmith_Policy_create(JNIEnv *env, jclass class, jbyteArray spec) {
    (void)class;
    char *text = copy_bytes(env, spec, NULL);
    if (!text) {
        return 0;
    }
    lsmith_error_t *error = NULL;
    lsmith_policy_t *policy = lsmith_policy_create(text, &error);
    free(text);
    throw_error(env, error);
    return to_java(policy);
}

JNIEXPORT void JNICALL Java_lsmith_Policy_destroy(JNIEnv *env, jclass class, jlong policy) {
    (void)env;
    (void)class;
    lsmith_policy_destroy(FROM_JAVA(lsmith_policy_t, policy));
}

JNIEXPORT jbyteArray JNICALL Java_lsmith_Policy_spec(JNIEnv *env, jclass class, jlong policy) {
    (void)class;
    lsmith_error_t *error = NULL;
    char *text = lsmith_policy_spec(FROM_JAVA(lsmith_policy_t, policy), &error);
    throw_error(env, error);
    return to_bytes(env, text);
}

JNIEXPORT void JNICALL Java_lsmith_Policy_check(JNIEnv *env, jclass class, jlong policy) {
    (void)class;
    lsmith_error_t *error = NULL;
    lsmith_policy_check(FROM_JAVA(lsmith_policy_t, policy), &error);
    throw_error(env, error);
}

JNIEXPORT void JNICALL Java_lsmith_Policy_checkPick(JNIEnv *env, jclass class, jlong policy) {
    (void)class;
    lsmith_error_t *error = NULL;
    lsmith_policy_check_pick(FROM_JAVA(lsmith_policy_t, policy), &error);
    throw_error(env, error);
}

JNIEXPORT jbyteArray JNICALL Java_lsmith_Policy_nextMerge(JNIEnv *env, jclass class, jlong policy,
                                                          jbyteArray view) {
    (void)class;
    size_t len = 0;
    char *text = copy_bytes(env, view, &len);
    if (!text) {
        return NULL;
    }
    lsmith_error_t *error = NULL;
    char *plan =
        lsmith_policy_next_merge(FROM_JAVA(lsmith_policy_t, policy), text, len, &error);
    free(text);
    throw_error(env, error);
    return to_bytes(env, plan);
}
