#!/usr/bin/env bash
# Builds the library that the jar carries, into the folder OUT/linux-x86_64. Maven calls it.
#
#   build-native.sh OUT
#
# The static library of crates/capi and the glue in src/main/native become one shared library that
# exports JNI's names only, so that it can live beside any other copy of lsmith in a process.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
out="${1:?expected a folder for the library}/linux-x86_64"
target="${CARGO_TARGET_DIR:-$root/target}"

if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then
    echo "the jar carries a library for x86-64 Linux only: this is $(uname -sm)" >&2
    exit 1
fi
cargo build --quiet --release --manifest-path "$root/Cargo.toml" -p lsmith-capi --target-dir "$target"
mkdir -p "$out"
cc -std=c11 -O2 -fPIC -shared -Wall -Wextra -Werror \
    -I "$root/crates/capi/include" -I "$JAVA_HOME/include" -I "$JAVA_HOME/include/linux" \
    "$here"/src/main/native/*.c "$target/release/liblsmith_c.a" \
    -Wl,--version-script="$here/src/main/native/exports.map" -Wl,--gc-sections -Wl,-z,defs \
    -lpthread -ldl -lm -o "$out/liblsmith_jni.so.new"
strip --strip-debug "$out/liblsmith_jni.so.new"
mv "$out/liblsmith_jni.so.new" "$out/liblsmith_jni.so"
