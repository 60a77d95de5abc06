#!/usr/bin/env bash
# Runs two instances of an application against a broker on loopback, kills one under load, and checks
# every count. Takes about a minute for 60000 records.
#
#   broker-check.sh [RECORDS [KEYS [SUPPLIERS_CLASS]]]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
mvn -q -B -f "$here/../pom.xml" -pl core,kafka-streams -DskipTests package \
    dependency:build-classpath '-Dmdep.outputFile=${project.build.directory}/classpath'
exec java -cp "$here/target/classes:$here/target/test-classes:$(cat "$here/target/classpath")" \
    lsmith.kafka.broker.BrokerCheck "$@"
