#!/bin/sh
# Makes the directories of RocksDB, LevelDB and Pebble that the tests read, anew: make.sh [STORE]...
# Needs db_bench and ldb of RocksDB 7.8 (Debian: apt-get install rocksdb-tools), and for
# `rocksdict` a Python with that package (pip install rocksdict==0.3.29, which has RocksDB 9.8).
# The stores of RocksDB 11.8 need Java 17, and in ROCKSDBJNI the file of org.rocksdb:rocksdbjni:11.8.1
# (mvn dependency:get -Dartifact=org.rocksdb:rocksdbjni:11.8.1 puts it into ~/.m2/repository).
# The stores of Pebble need Go alone, in GO, which loads Pebble 1.1.5 and 2.1.7 and builds main.go in
# pebble11 and pebble21.
# metrics.txt and manifest.txt are what Pebble and its tool say.
# The log of Cassandra 5.0.5 needs Java 17 and mvn, which loads 70 MB, and /var/lib/cassandra.
# The stores of LevelDB need a Python with plyvel (pip install plyvel==1.5.1, which has LevelDB
# 1.22) alone: LOG, LOG.old and MANIFEST-* are kept, and stats.txt, what LevelDB says in the end.
# LOG, MANIFEST-* and OPTIONS-* are kept, compressed, and what ldb says of the MANIFEST.
set -eu
cd "$(dirname "$0")"
data=$PWD
PYTHON=${PYTHON:-python3}
GO=${GO:-go}
ROCKSDBJNI=${ROCKSDBJNI:-$HOME/.m2/repository/org/rocksdb/rocksdbjni/11.8.1/rocksdbjni-11.8.1.jar}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

keep() { # NAME: what the tests read of the store in ./NAME
    rm -rf "${data:?}/$1"
    mkdir -p "$data/$1"
    ldb manifest_dump --json --hex --path="$(ls "$1"/MANIFEST-*)" > "$1/manifest.txt"
    # The newest OPTIONS file has the settings of now.
    for file in LOG manifest.txt CURRENT \
        $(cd "$1" && ls MANIFEST-* && ls OPTIONS-* | tail -1 && ls stats.txt 2> /dev/null); do
        gzip -9 -n -c "$1/$file" > "$data/$1/$file.gz"
    done
}

keep_leveldb() { # NAME: the same for a store of LevelDB
    rm -rf "${data:?}/$1"
    mkdir -p "$data/$1"
    for file in $(cd "$1" && ls LOG LOG.old CURRENT MANIFEST-* stats.txt 2> /dev/null); do
        gzip -9 -n -c "$1/$file" > "$data/$1/$file.gz"
    done
}

keep_pebble() { # NAME: the same for a store of Pebble
    rm -rf "${data:?}/$1"
    mkdir -p "$data/$1"
    pebble11/pebble11 manifest dump "$(ls "$1"/MANIFEST-*)" > "$1/manifest.txt"
    for file in $(cd "$1" && ls LOG CURRENT marker.manifest.* MANIFEST-* *.txt &&
        ls OPTIONS-* | tail -1); do
        gzip -9 -n -c "$1/$file" > "$data/$1/$file.gz"
    done
}

# Writes come at 4 MB/s, so that merges keep up with them.
common="--value_size=200 --compression_type=none --write_buffer_size=524288 --seed=1
    --benchmark_write_rate_limit=4000000 --sync=0 --stats_dump_period_sec=0"

[ $# -gt 0 ] || set -- leveled universal deletes heldout rocksdict \
    rocksdbjni rocksdbjni-heldout \
    leveldb leveldb-reopened leveldb-heldout pebble pebble-deep pebble-heldout pebble2 cassandra
for name in "$@"; do
    case $name in
    leveled) # two column families, overwrites, then deletes, then overwrites
        db_bench --db=leveled --num=60000 --num_column_families=2 $common \
            --benchmarks=overwrite,deleterandom,overwrite,flush,waitforcompaction \
            --target_file_size_base=524288 --max_bytes_for_level_base=2097152 \
            --max_bytes_for_level_multiplier=4 > /dev/null
        ;;
    universal)
        db_bench --db=universal --num=40000 --writes=160000 $common --compaction_style=1 \
            --benchmarks=overwrite,flush \
            --level0_file_num_compaction_trigger=4 > /dev/null
        ;;
    heldout) # settings that were chosen after the replay was written
        db_bench --db=heldout --num=40000 --num_column_families=2 --seed=23 --value_size=180 \
            --write_buffer_size=250000 --compression_type=none --compaction_pri=0 --sync=0 \
            --benchmark_write_rate_limit=4000000 --stats_dump_period_sec=0 \
            --benchmarks=overwrite,deleterandom,overwrite,flush,waitforcompaction \
            --target_file_size_base=350000 --max_bytes_for_level_base=1000000 \
            --max_bytes_for_level_multiplier=3 --level_compaction_dynamic_level_bytes=true \
            > /dev/null 2>&1
        ;;
    deletes) # overwrites, then deletes, compressed
        db_bench --db=deletes --num=30000 --writes=90000 --seed=13 --value_size=120 \
            --write_buffer_size=300000 --compression_type=snappy --compression_ratio=0.6 \
            --benchmark_write_rate_limit=3000000 --stats_dump_period_sec=0 --sync=0 \
            --benchmarks=overwrite,deleterandom,flush --compaction_style=1 \
            --universal_size_ratio=30 --universal_max_size_amplification_percent=90 \
            --level0_file_num_compaction_trigger=5 > /dev/null 2>&1
        ;;
    rocksdict)
        "$PYTHON" "$data/rocksdb98.py" rocksdict
        ;;
    rocksdbjni*)
        java -cp "$ROCKSDBJNI" "$data/rocksdb11.java" "$name"
        ;;
    pebble2)
        cp -r "$data/pebble21" pebble21
        (cd pebble21 && "$GO" mod tidy && "$GO" build -o pebble21 .)
        pebble21/pebble21 pebble2
        mkdir -p "$data/pebble2"
        for file in $(cd pebble2 && ls LOG marker.manifest.* MANIFEST-* OPTIONS-* metrics.txt); do
            gzip -9 -n -c "pebble2/$file" > "$data/pebble2/$file.gz"
        done
        continue
        ;;
    pebble*)
        if [ ! -d pebble11 ]; then
            cp -r "$data/pebble11" pebble11
            (cd pebble11 && "$GO" mod tidy && "$GO" build -o pebble11 .)
        fi
        pebble11/pebble11 "$name"
        keep_pebble "$name"
        continue
        ;;
    cassandra)
        cp -r "$data/cassandra50" .
        mvn -q -B -f cassandra50/pom.xml dependency:copy-dependencies -DoutputDirectory=lib
        opens=$(sed 's/.*/--add-opens &=ALL-UNNAMED/' cassandra50/opens.txt)
        exports=$(sed 's/.*/--add-exports &=ALL-UNNAMED/' cassandra50/exports.txt)
        java $opens $exports -Xmx1500m -Dcassandra.config="file://$work/cassandra50/cassandra.yaml" \
            -Dcassandra.storagedir=/var/lib/cassandra -Dcassandra.logdir="$work/cassandra50" \
            -cp "cassandra50/lib/*" cassandra50/Cassandra50.java cassandra50/metrics.txt > /dev/null
        mkdir -p "$data/cassandra"
        for file in compaction.log metrics.txt; do
            gzip -9 -n -c "cassandra50/$file" > "$data/cassandra/$file.gz"
        done
        continue
        ;;
    leveldb*)
        "$PYTHON" "$data/leveldb122.py" "$name"
        keep_leveldb "$name"
        continue
        ;;
    esac
    keep "$name"
done
