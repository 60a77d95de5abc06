//! The commands that look at a store or change it.

use super::parse::{seconds, seconds_of_life};
use super::shared::TableArgs;
use crate::text::Coding;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The directory of the store
    pub(crate) dir: PathBuf,
    /// Print one picture and end; `--json` does that too
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two pictures, 0.1 to 3600
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    pub(crate) interval: Duration,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "In keys and values, \\xNN is the byte with these hexadecimal digits, and \
\\\\ is a backslash. Printable UTF-8 is written as it is. So what is printed can be read back.")]
pub(crate) struct DbArgs {
    /// The directory of the store
    pub(crate) dir: PathBuf,
    /// The keyspace
    #[arg(long, global = true, default_value = lsmith::DEFAULT_KEYSPACE, value_name = "NAME")]
    pub(crate) keyspace: String,
    /// The codec of a keyspace that this command creates: `none`, `lz4`, `zstd`, or a list with one
    /// codec per level [default: none]
    #[arg(long, global = true, value_name = "CODECS")]
    pub(crate) compression: Option<String>,
    /// The group of a keyspace that this command creates. Keyspaces of a group share a tree, so
    /// that they merge together. One that exists must be in this group
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// A keyspace that this command creates keeps sequence numbers, so that it can ingest tables
    /// with numbers of their own. One that exists must keep them
    #[arg(long, global = true)]
    pub(crate) keep_numbers: bool,
    /// Bits of filter per key of a keyspace that this command creates; 0 for no filter. One that
    /// exists must have as many
    #[arg(long, global = true, value_name = "BITS")]
    pub(crate) filter_bits: Option<u8>,
    /// Filters of a keyspace that this command creates also hold the first so many bytes of keys,
    /// 1 to 1024, so that scans of a prefix skip runs without it. One that exists must hold as many
    #[arg(long, global = true, value_name = "BYTES")]
    pub(crate) prefix_bytes: Option<u16>,
    /// The number of seconds after which a value expires, for a keyspace that this command creates.
    /// One that exists must have the same expiry, and has it without this option too
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds_of_life)]
    pub(crate) expire_after: Option<u64>,
    /// The time that the store's clock shows, in its own unit, while this command runs. For stores
    /// whose clock is not `unix_seconds`, the default; at 0 nothing has expired
    #[arg(long, global = true, value_name = "TIME")]
    pub(crate) time: Option<u64>,
    /// The combine operator of a keyspace that this command creates. One that exists must have the
    /// same. `counter` adds numbers of 8 bytes, the lowest first
    #[arg(long, global = true, value_name = "NAME", value_parser = ["counter"])]
    pub(crate) operator: Option<String>,
    /// Write keys and values as hexadecimal digits, two for each byte, in arguments, input and
    /// output
    #[arg(long, global = true)]
    pub(crate) hex: bool,
    /// Take keys and values of arguments and input as they are, without escapes. `get` prints the
    /// bytes of the value and nothing else
    #[arg(long, global = true, conflicts_with = "hex")]
    pub(crate) raw: bool,
    #[command(subcommand)]
    pub(crate) command: DbCommand,
}

impl DbArgs {
    /// Returns how keys and values are written.
    pub(crate) fn coding(&self) -> Coding {
        match (self.hex, self.raw) {
            (true, _) => Coding::Hex,
            (_, true) => Coding::Raw,
            _ => Coding::Escaped,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Print the value of a key
    Get {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
    },
    /// Set the value of a key, which must not be empty; creates the store and the keyspace if they
    /// are missing
    Put {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
        #[arg(allow_hyphen_values = true)]
        value: OsString,
    },
    /// Remove a key
    Delete {
        #[arg(allow_hyphen_values = true)]
        key: OsString,
    },
    /// Remove all keys from FROM up to TO, without TO, by one write
    DeleteRange {
        #[arg(allow_hyphen_values = true)]
        from: OsString,
        #[arg(allow_hyphen_values = true)]
        to: OsString,
    },
    /// Print entries in key order, a tab between key and value
    Scan(ScanArgs),
    /// Ingest tables, such as `export` writes, all or none; or put each line `key<TAB>value` of
    /// text files, or of standard input for `-`. Creates the store and the keyspace if missing
    #[command(after_help = "A file is a table if its name ends with .table, or if it ends as a \
table does.")]
    Ingest {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Take tables over by a second name (a hard link) instead of copying them. Then nobody may
        /// change them any more
        #[arg(long)]
        link: bool,
        /// Take tables with sequence numbers even if deleted keys could come back: those with an
        /// entry older than a deletion that a merge has dropped
        #[arg(long)]
        allow_resurrect: bool,
    },
    /// Write entries to a table, for another store to ingest
    Export(ExportArgs),
    /// Bulk load the lines `key<TAB>value` of a file, or of standard input for `-`, straight into
    /// tables, all or none. Keys must ascend. Creates the store and the keyspace if missing
    Load { file: PathBuf },
    /// Merge the whole keyspace into one run
    Compact,
    /// Print the statistics of the keyspace
    Stats(TableArgs),
    /// Print all figures of the store as text for Prometheus
    Metrics,
    /// Print the statistics of all keyspaces, one keyspace per line
    Keyspaces(TableArgs),
    /// Print the settings of all keyspaces as the manifest has them, without opening the store.
    /// Another process may have it open
    List(TableArgs),
    /// Drop a keyspace, or a group with all its keyspaces
    Drop {
        /// The name of the keyspace or group
        name: String,
    },
    /// Remove all entries of the keyspace, at one moment
    Clear,
    /// Print the identity of the store. A checkpoint, a restored backup and a repaired store also
    /// name their original
    Id,
    /// Destroy the store: remove its files, and the directory if nothing else is in it
    Destroy {
        /// Say that all entries may be lost. Without it nothing is done
        #[arg(long)]
        yes: bool,
    },
    /// Rename a keyspace or a group
    Rename {
        /// The present name
        from: String,
        /// The new name: 1 to 64 letters, digits, `_`, `-` or `.`
        to: String,
    },
    /// Print the tree as text, or as a table of its runs
    #[command(after_help = TREE_NOTATION)]
    Tree(TreeArgs),
    /// Print why the store wrote what it wrote: what merges took and wrote, by level
    Why,
    /// Write a page about the store: the trees of its keyspaces and what merges wrote
    Report {
        /// The file of the page, to look at in a browser
        #[arg(long, value_name = "FILE")]
        html: PathBuf,
    },
    /// Check every file and exit with 1 if one is damaged. Also print the log parts that an opening
    /// leaves out after power loss, and the files that do not belong to the store
    Verify,
    /// Print one file of the store as text, without opening the store. Damaged places are printed
    /// in file order; the exit code is then 1
    Dump(DumpArgs),
    /// Copy all readable entries of a damaged store into a new store, and print the losses. The
    /// damaged store is not changed
    Repair {
        /// The directory of the new store; it must be empty or missing
        to: PathBuf,
    },
    /// Make a store of its own that holds what the store holds now. Files that do not change get a
    /// second name (a hard link), if both are on one device
    Checkpoint {
        /// The directory of the new store; it must be empty or missing
        to: PathBuf,
    },
    /// Make a backup of the store in a directory of backups. Only files that are new since an
    /// earlier backup are copied
    Backup {
        /// The directory of backups; it is made if it is missing
        to: PathBuf,
        /// Remove all backups but the newest N afterwards
        #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
        keep: Option<u64>,
        /// Read the files that are shared with an earlier backup, and copy damaged ones anew
        #[arg(long)]
        check: bool,
    },
    /// Print the writes of all keyspaces that the logs hold, in their order: number, keyspace,
    /// `put` or `delete`, key and value, with tabs between
    Changes {
        /// The sequence number to begin with [default: the oldest that the logs hold]
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Print at most N writes
        #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
        limit: Option<u64>,
    },
    /// Print the backups in the directory DIR, oldest first
    Backups {
        /// Read all files, and exit with 1 if one is damaged
        #[arg(long)]
        verify: bool,
        /// Remove the backup with this number, and the files that no other one needs
        #[arg(long, value_name = "N", conflicts_with = "verify")]
        remove: Option<u64>,
    },
    /// Make the store DIR, which must be empty or missing, of a backup
    Restore {
        /// The directory of backups
        from: PathBuf,
        /// The number of the backup [default: the newest]
        #[arg(long, value_name = "N")]
        backup: Option<u64>,
    },
    /// Print the merge policy and its next plan, or set the policy
    Policy {
        /// The new policy; without it, the current policy is printed
        spec: Option<String>,
    },
    /// Print the codecs of tables, or set the codecs of new tables
    Compression {
        /// A codec, or a list of codecs for the levels, such as `none,lz4,zstd(level=9)`
        codecs: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Print a row per run, with a key of the notation
    #[arg(long)]
    pub(crate) short: bool,
    /// Print the graph of the tables: row by row, each table below the newer ones that share keys
    #[arg(long, conflicts_with = "short")]
    pub(crate) graph: bool,
    /// Print that graph in the language of Graphviz
    #[arg(long, conflicts_with_all = ["short", "graph"])]
    pub(crate) dot: bool,
    /// Draw that graph into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["short", "graph", "dot"])]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The file: a table, log, spill (`.spill`), manifest or CURRENT. A path, or a name in
    /// the directory of the store
    pub(crate) file: PathBuf,
    /// Print values, not only their lengths
    #[arg(long)]
    pub(crate) values: bool,
    /// Print at most N items: the entries of a table or a spill, the writes of a log, or
    /// the records of a manifest. 0 prints an outline. The whole file is checked anyway
    /// [default: all]
    #[arg(long, visible_alias = "entries", value_name = "N")]
    #[arg(value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file that is written; it must not exist
    pub(crate) file: PathBuf,
    /// Also write sequence numbers and deletions, so that the table goes where its age puts it. The
    /// keyspace must keep numbers
    #[arg(long)]
    pub(crate) numbers: bool,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
}

/// A range of keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// The first key, inclusive [default: the first key of the keyspace]
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// The end key, exclusive [default: no end]
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) to: Option<OsString>,
    /// Only keys with this prefix
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) prefix: Option<OsString>,
}

impl RangeArgs {
    /// Returns true if the range has all keys.
    pub(crate) fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.prefix.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Print in descending key order
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Print at most N entries [default: all]
    #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

/// The notation of trees.
const TREE_NOTATION: &str = "\
L0 r4[t7:a..k of a..z 1MiB 900e 20d s5..9] is a run of level 0:
  r4          the number of the run; the newest run of a level comes first
  t7          the number of a table, and of its file
  a..k        the keys of the slice, from a up to, not including, k
  of a..z     the keys of the whole table, if the slice is a part of it
  1MiB        logical bytes: keys, values and 8 per entry
  900e 20d    entries, and those of them that delete a key
  s5..9       sequence numbers
#5 is the key whose eight bytes are the number 5.";
