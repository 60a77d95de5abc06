#!/usr/bin/env bash
# Many stores in one process: on lsmith, then on Kafka's own stores on RocksDB.
#
#   store-bench.sh [STORES [RECORDS]]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
mvn -q -B -f "$here/../pom.xml" -pl core,kafka-streams -DskipTests package \
    dependency:build-classpath '-Dmdep.outputFile=${project.build.directory}/classpath'
for kind in lsmith rocksdb; do
    directory="$(mktemp -d)"
    echo "$kind:"
    java -Xmx256m -XX:+UseSerialGC \
        -cp "$here/target/classes:$here/target/test-classes:$(cat "$here/target/classpath")" \
        lsmith.kafka.broker.StoreBench "$kind" "$directory" "$@"
    rm -rf "$directory"
done
