#!/usr/bin/env bash
# Runs three nodes on loopback, kills nodes and replaces policies under load, and checks every row.
# Takes about five minutes for 10000 changes in each of nine scenes.
#
#   cluster-check.sh [CHANGES]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
mvn -q -B -f "$here/../pom.xml" -pl core,cassandra -DskipTests package \
    dependency:build-classpath '-Dmdep.outputFile=${project.build.directory}/classpath'
exec java -Dnode.options="$here/node.options" \
    -cp "$here/target/classes:$here/target/test-classes:$(cat "$here/target/classpath")" \
    lsmith.cassandra.cluster.ClusterCheck "$@"
