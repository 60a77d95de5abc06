#!/usr/bin/env bash
# Builds the library of the tests into the folder OUT: policies as in the library that the jar
# carries, and one that plans nonsense. Maven calls it, after core has built lsmith.
#
#   build-hostile.sh OUT
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
core="$here/../core/src/main/native"
out="${1:?expected a folder for the library}"
target="${CARGO_TARGET_DIR:-$root/target}"

mkdir -p "$out"
compile() {
    cc -std=c11 -O1 -fPIC -Wall -Wextra -Werror -I "$root/crates/capi/include" \
        -I "$JAVA_HOME/include" -I "$JAVA_HOME/include/linux" "$@"
}
compile -Dlsmith_policy_create=hostile_policy_create -c "$core/policy.c" -o "$out/policy.o"
compile -c "$here/src/test/native/hostile.c" -o "$out/hostile.o"
compile -shared "$out/policy.o" "$out/hostile.o" "$target/release/liblsmith_c.a" \
    -Wl,--version-script="$core/exports.map" -Wl,--gc-sections -Wl,-z,defs -lpthread -ldl -lm \
    -o "$out/libhostile.so"
