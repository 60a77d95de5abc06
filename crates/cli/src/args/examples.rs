//! The examples that `--help` ends with.

use super::Cli;
use clap::CommandFactory;

/// The examples of each command, by the words that name it. A test parses every one of them.
pub(super) const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "lsmith compare --policies 'minlatency(k=4); leveled(ratio=8)'",
            "lsmith tune --workload 'ycsb(a, records=100k, ops=200k)' --space-cost-max 1.5",
        ],
    ),
    (
        "compare",
        &[
            "lsmith compare --policies 'minlatency(k=4); leveled(ratio=8)'",
            "lsmith compare --policies 'tiered; leveled' --memtable 256KiB \\\n      \
             --workload 'mix(get=0.6, get_absent=0.2, put=0.2, keys=100k, value=100B)'",
        ],
    ),
    (
        "explain",
        &["lsmith explain --workload 'churn(keys=60k, ops=200k, value=100B)' \\\n      \
           --memtable 128KiB 'leveled(ratio=8)' 'tiered(ratio=4)'"],
    ),
    (
        "simulate",
        &[
            "lsmith simulate --policy 'leveled(ratio=4)' --flushes 20 --trace",
            "lsmith simulate --policy tiered --flushes 30 --content keyed \\\n      \
             --memtable 256KiB --workload 'ycsb(a, records=50k, ops=200k, value=100B)'",
        ],
    ),
    (
        "model",
        &[
            "lsmith model --policy leveldb --keys 100M --zipf 0.8",
            "lsmith model --unique 1M,10M --keys 1M --zipf 0.99",
        ],
    ),
    (
        "tune",
        &[
            "lsmith tune --workload 'churn(keys=1M, ops=10M)' --read-cost-max 6",
            "lsmith tune --workload 'ycsb(a, records=1M, ops=2M)' --drift 0.5 --verify",
        ],
    ),
    ("calibrate", &["lsmith calibrate --out machine", "lsmith calibrate --dir /data"]),
    ("doctor", &["lsmith doctor /var/lib/app/rocksdb", "lsmith doctor LOG --json"]),
    (
        "run",
        &["lsmith run --policy 'leveled(ratio=8)' --memtable 256KiB \\\n      \
           --workload 'load(keys=100k, value=100B)' --dir STORE"],
    ),
    ("record", &["lsmith record STORE recordings --time 10m", "lsmith record STORE --stop"]),
    ("reproduce", &["lsmith reproduce list", "lsmith reproduce thonangi-fig2 --quick --svg ."]),
    ("policies", &["lsmith policies"]),
    ("workloads", &["lsmith workloads"]),
    ("laws", &["lsmith laws 'tiered(ratio=3)'"]),
    ("db", &["lsmith db STORE put apple red", "lsmith db STORE stats"]),
    ("db get", &["lsmith db STORE get apple"]),
    ("db put", &["lsmith db STORE --keyspace fruit put apple red"]),
    ("db delete", &["lsmith db STORE delete apple"]),
    ("db delete-range", &["lsmith db STORE delete-range apple pear"]),
    ("db scan", &["lsmith db STORE scan --prefix ap --limit 10"]),
    (
        "db ingest",
        &["lsmith db STORE ingest fruit.table", "lsmith db OTHER scan | lsmith db STORE ingest -"],
    ),
    ("db export", &["lsmith db STORE export fruit.table --from a --to q"]),
    ("db load", &["lsmith db STORE load sorted.txt"]),
    ("db compact", &["lsmith db STORE --keyspace fruit compact"]),
    ("db stats", &["lsmith db STORE stats --wide"]),
    ("db metrics", &["lsmith db STORE metrics"]),
    ("db keyspaces", &["lsmith db STORE keyspaces"]),
    ("db list", &["lsmith db STORE list"]),
    ("db drop", &["lsmith db STORE drop fruit"]),
    ("db clear", &["lsmith db STORE --keyspace fruit clear"]),
    ("db id", &["lsmith db STORE id"]),
    ("db destroy", &["lsmith db STORE destroy --yes"]),
    ("db rename", &["lsmith db STORE rename fruit fruits"]),
    ("db tree", &["lsmith db STORE tree --short", "lsmith db STORE tree --svg tree.svg"]),
    ("db why", &["lsmith db STORE why"]),
    ("db report", &["lsmith db STORE report --html store.html"]),
    ("db verify", &["lsmith db STORE verify"]),
    ("db dump", &["lsmith db STORE dump CURRENT"]),
    ("db repair", &["lsmith db STORE repair NEW"]),
    ("db checkpoint", &["lsmith db STORE checkpoint COPY"]),
    ("db backup", &["lsmith db STORE backup BACKUPS --keep 7"]),
    ("db changes", &["lsmith db STORE changes --limit 20"]),
    ("db backups", &["lsmith db BACKUPS backups --verify"]),
    ("db restore", &["lsmith db NEW restore BACKUPS"]),
    ("db policy", &["lsmith db STORE policy", "lsmith db STORE policy 'tiered(ratio=4)'"]),
    ("db renew-keys", &["lsmith db STORE --key-file NEW --older-key-file OLD renew-keys"]),
    ("db compression", &["lsmith db STORE compression none,lz4,zstd"]),
    ("watch", &["lsmith watch STORE --interval 5"]),
    (
        "completions",
        &["lsmith completions bash > ~/.local/share/bash-completion/completions/lsmith"],
    ),
    ("man", &["lsmith man ~/.local/share/man/man1"]),
];

/// Returns all commands, each with its examples.
pub(crate) fn command() -> clap::Command {
    with_examples(Cli::command(), "")
}

/// Adds the examples of the command that `words` name, and of its commands.
fn with_examples(command: clap::Command, words: &str) -> clap::Command {
    let command = command.mut_subcommands(|inner| {
        let words = format!("{words} {}", inner.get_name());
        with_examples(inner, words.trim_start())
    });
    let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == words) else {
        return command;
    };
    let head = if examples.len() == 1 { "Example:" } else { "Examples:" };
    let examples: Vec<String> = examples.iter().map(|line| format!("  {line}")).collect();
    let shown = format!("{head}\n{}", examples.join("\n"));
    let shown = match command.get_after_help() {
        Some(text) => format!("{text}\n\n{shown}"),
        None => shown,
    };
    command.after_long_help(shown)
}
