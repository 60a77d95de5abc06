#!/usr/bin/env bash
# Prints what compaction strategies cost on the same writes, on a node in one process.
#
#   measure.sh FLUSHES STRATEGY...
#
# A strategy is the name of one of Cassandra's own, with its options behind a colon, or a policy.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
mvn -q -B -f "$here/../pom.xml" -pl core,cassandra -DskipTests package \
    dependency:build-classpath '-Dmdep.outputFile=${project.build.directory}/classpath'
exec java "@$here/node.options" -Xmx1g -Dnode.folder="$here/target/measured" \
    -cp "$here/target/classes:$here/target/test-classes:$(cat "$here/target/classpath")" \
    lsmith.cassandra.MeasureStrategies "$@"
