package lsmith.cassandra;

import java.nio.file.Path;
import java.util.List;

/** What the configurations of all nodes share. */
public final class NodeConfig {
    private NodeConfig() {}

    /** Returns lines of {@code cassandra.yaml} for a node that keeps everything in a folder. */
    public static List<String> yaml(Path folder, String address, String seed, int port) {
        return List.of(
                "cluster_name: lsmith",
                "num_tokens: 1",
                "partitioner: org.apache.cassandra.dht.Murmur3Partitioner",
                "endpoint_snitch: SimpleSnitch",
                "listen_address: " + address,
                "rpc_address: " + address,
                "storage_port: " + port,
                "commitlog_segment_size: 8MiB",
                "compaction_throughput: 0MiB/s",
                "auto_snapshot: false",
                "disk_access_mode: standard",
                "commitlog_directory: " + folder.resolve("commitlog"),
                "saved_caches_directory: " + folder.resolve("caches"),
                "hints_directory: " + folder.resolve("hints"),
                "cdc_raw_directory: " + folder.resolve("cdc"),
                "seed_provider:",
                "  - class_name: org.apache.cassandra.locator.SimpleSeedProvider",
                "    parameters:",
                "      - seeds: \"" + seed + ":" + port + "\"");
    }
}
