//! The commands that look at a store or change it.

use super::names::POLICIES;
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
    /// Print one picture and end
    ///
    /// `--json` does that too.
    #[arg(long)]
    pub(crate) once: bool,
    /// Seconds between two pictures
    ///
    /// 0.1 to 3600.
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
    /// A file with the key of the store
    ///
    /// All files that the command reads and writes are encrypted with it: the store, its copies,
    /// and tables. The file has 32 random bytes, or 64 hexadecimal digits.
    #[arg(help_heading = "Encryption", long, global = true, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file with an older key
    ///
    /// What is still encrypted with this key is read too. Can be given several times.
    #[arg(help_heading = "Encryption", long, global = true, value_name = "FILE")]
    #[arg(requires = "key_file")]
    pub(crate) older_key_file: Vec<PathBuf>,
    /// Its codecs
    ///
    /// The codec of a keyspace that this command creates: `none`, `lz4`, `zstd`, or a list with one
    /// codec per level. Without it: none.
    #[arg(
        help_heading = "A keyspace that the command creates",
        long,
        global = true,
        value_name = "CODECS"
    )]
    pub(crate) compression: Option<String>,
    /// Its group
    ///
    /// The group of a keyspace that this command creates. Keyspaces of a group share a tree, so
    /// that they merge together. One that exists must be in this group.
    #[arg(
        help_heading = "A keyspace that the command creates",
        long,
        global = true,
        value_name = "NAME"
    )]
    pub(crate) group: Option<String>,
    /// It keeps sequence numbers
    ///
    /// A keyspace that this command creates keeps sequence numbers, so that it can ingest tables
    /// with numbers of their own. One that exists must keep them.
    #[arg(help_heading = "A keyspace that the command creates")]
    #[arg(long, global = true)]
    pub(crate) keep_numbers: bool,
    /// Its bits of filter per key
    ///
    /// It is for a keyspace that this command creates; 0 for no filter. One that exists must have
    /// as many.
    #[arg(
        help_heading = "A keyspace that the command creates",
        long,
        global = true,
        value_name = "BITS"
    )]
    pub(crate) filter_bits: Option<u8>,
    /// Its filters also hold prefixes
    ///
    /// The filters of a keyspace that this command creates also hold a prefix of each key, of 1 to
    /// 1024 bytes. Scans of a prefix then skip runs without it. A keyspace that exists must have
    /// prefixes of this length.
    #[arg(
        help_heading = "A keyspace that the command creates",
        long,
        global = true,
        value_name = "BYTES"
    )]
    pub(crate) prefix_bytes: Option<u16>,
    /// How long its values live
    ///
    /// The number of seconds after which a value expires, for a keyspace that this command creates.
    /// One that exists must have the same expiry, and has it without this option too.
    #[arg(help_heading = "A keyspace that the command creates")]
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds_of_life)]
    pub(crate) expire_after: Option<u64>,
    /// The time of the store's clock
    ///
    /// The unit is the clock's own. The time holds while this command runs. It is for stores whose
    /// clock is not `unix_seconds`, the default. At 0 nothing has expired.
    #[arg(long, global = true, value_name = "TIME")]
    pub(crate) time: Option<u64>,
    /// Its combine operator
    ///
    /// It is for a keyspace that this command creates. One that exists must have the same.
    /// `counter` adds numbers of 8 bytes, the lowest first.
    #[arg(help_heading = "A keyspace that the command creates")]
    #[arg(long, global = true, value_name = "NAME", value_parser = ["counter"])]
    pub(crate) operator: Option<String>,
    /// Keys and values are hexadecimal
    ///
    /// There are two digits for each byte, in arguments, input and output.
    #[arg(help_heading = "Keys and values")]
    #[arg(long, global = true)]
    pub(crate) hex: bool,
    /// Keys and values have no escapes
    ///
    /// Take keys and values of arguments and input as they are. `get` prints the bytes of the value
    /// and nothing else.
    #[arg(help_heading = "Keys and values")]
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
    /// Set the value of a key
    ///
    /// The key must not be empty. Creates the store and the keyspace if they are missing.
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
    /// Remove all keys of a range
    ///
    /// The keys from FROM up to TO, without TO, are removed by one write.
    DeleteRange {
        #[arg(allow_hyphen_values = true)]
        from: OsString,
        #[arg(allow_hyphen_values = true)]
        to: OsString,
    },
    /// Print entries in key order
    ///
    /// A tab stands between key and value.
    Scan(ScanArgs),
    /// Ingest tables, or lines of text
    ///
    /// Tables, such as `export` writes, go in all or none. Each line `key<TAB>value` of text files,
    /// or of standard input for `-`, is put. Creates the store and the keyspace if missing.
    #[command(after_help = "A file is a table if its name ends with .table, or if it ends as a \
table does.")]
    Ingest {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Give tables a second name, do not copy
        ///
        /// A hard link takes them over. Then nobody may change them any more.
        #[arg(long)]
        link: bool,
        /// Take tables older than deletions
        ///
        /// Take tables with sequence numbers even if deleted keys could come back: those with an
        /// entry older than a deletion that a merge has dropped.
        #[arg(long)]
        allow_resurrect: bool,
    },
    /// Write entries to a table
    ///
    /// Another store can ingest it.
    Export(ExportArgs),
    /// Bulk load ascending lines of text
    ///
    /// Loads the lines `key<TAB>value` of a file, or of standard input for `-`, straight into
    /// tables, all or none. Keys must ascend. Creates the store and the keyspace if missing.
    Load { file: PathBuf },
    /// Merge the whole keyspace into one run
    Compact,
    /// Print the statistics of the keyspace
    Stats(TableArgs),
    /// Print all figures for Prometheus
    ///
    /// They are text that Prometheus reads.
    Metrics,
    /// Print the statistics of all keyspaces
    ///
    /// Each keyspace has a line.
    Keyspaces(TableArgs),
    /// Print the settings of all keyspaces
    ///
    /// They are as the manifest has them. The store is not opened, so another process may have it
    /// open.
    List(TableArgs),
    /// Drop a keyspace or a group
    ///
    /// A group goes with all its keyspaces.
    Drop {
        /// The name of the keyspace or group
        name: String,
    },
    /// Remove all entries of the keyspace
    ///
    /// All are removed at one moment.
    Clear,
    /// Encrypt all files with the newest key
    ///
    /// Files that have a key of `--older-key-file` get the one of `--key-file`. Afterwards no older
    /// key is needed. It takes as long as copying them.
    RenewKeys,
    /// Print the identity of the store
    ///
    /// A checkpoint, a restored backup and a repaired store also name their original.
    Id,
    /// Remove the files of the store
    ///
    /// The directory is removed too, if nothing else is in it.
    Destroy {
        /// Say that all entries may be lost
        ///
        /// Without it nothing is done.
        #[arg(long)]
        yes: bool,
    },
    /// Rename a keyspace or a group
    Rename {
        /// The present name
        from: String,
        /// The new name
        ///
        /// 1 to 64 letters, digits, `_`, `-` or `.`.
        to: String,
    },
    /// Print the tree
    ///
    /// It is text, a table of its runs, or a graph of its tables.
    #[command(after_help = TREE_NOTATION)]
    Tree(TreeArgs),
    /// Print why the store wrote what it wrote
    ///
    /// Prints what merges took and wrote, by level.
    Why,
    /// Write a page about the store
    ///
    /// The page has the trees of its keyspaces, and what merges wrote.
    Report {
        /// The file of the page
        ///
        /// A browser shows it.
        #[arg(long, value_name = "FILE")]
        html: PathBuf,
    },
    /// Check every file
    ///
    /// Exits with 1 if one is damaged. Also prints the log parts that an opening leaves out after
    /// power loss, and the files that do not belong to the store.
    Verify,
    /// Print one file of the store as text
    ///
    /// Does not open the store. Damaged places are printed in file order; the exit code is then 1.
    Dump(DumpArgs),
    /// Copy what is readable to a new store
    ///
    /// Copies all readable entries of a damaged store, and prints the losses. The damaged store is
    /// not changed.
    Repair {
        /// The directory of the new store
        ///
        /// It must be empty or missing.
        to: PathBuf,
    },
    /// Make a second store of it
    ///
    /// It holds what the store holds now. Files that do not change get a second name (a hard link),
    /// if both are on one device.
    Checkpoint {
        /// The directory of the new store
        ///
        /// It must be empty or missing.
        to: PathBuf,
    },
    /// Make a backup of the store
    ///
    /// The backup is in a directory of backups. Only files that are new since an earlier backup are
    /// copied.
    Backup {
        /// The directory of backups
        ///
        /// It is made if it is missing.
        to: PathBuf,
        /// Keep only the newest N backups
        ///
        /// Removes the others afterwards.
        #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
        keep: Option<u64>,
        /// Read the files that are shared
        ///
        /// Reads the files that an earlier backup has too, and copies damaged ones anew.
        #[arg(long)]
        check: bool,
    },
    /// Print the writes that the logs hold
    ///
    /// Writes of all keyspaces come in their order: number, keyspace, `put` or `delete`, key and
    /// value, with tabs between.
    Changes {
        /// The sequence number to begin with
        ///
        /// Without it: the oldest that the logs hold.
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Print at most N writes
        #[arg(long, value_name = "N", value_parser = lsmith_spec::parse_count)]
        limit: Option<u64>,
    },
    /// Print the backups in DIR
    ///
    /// The oldest comes first.
    Backups {
        /// Read all files
        ///
        /// Exits with 1 if one is damaged.
        #[arg(long)]
        verify: bool,
        /// Remove the backup of this number
        ///
        /// The files that no other one needs are removed too.
        #[arg(long, value_name = "N", conflicts_with = "verify")]
        remove: Option<u64>,
    },
    /// Make the store of a backup
    ///
    /// The directory of the store must be empty or missing.
    Restore {
        /// The directory of backups
        from: PathBuf,
        /// The number of the backup
        ///
        /// Without it: the newest.
        #[arg(long, value_name = "N")]
        backup: Option<u64>,
    },
    /// Print or set the merge policy
    ///
    /// Without a new one, prints the policy and its next plan.
    Policy {
        /// The new policy
        ///
        /// Without it, the current policy is printed.
        #[arg(value_parser = POLICIES, hide_possible_values = true)]
        spec: Option<String>,
    },
    /// Print or set the codecs of tables
    ///
    /// New ones hold for new tables.
    Compression {
        /// The new codecs
        ///
        /// A codec, or a list of codecs for the levels, such as `none,lz4,zstd(level=9)`.
        codecs: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Print a row per run
    ///
    /// A key of the notation is below.
    #[arg(long)]
    pub(crate) short: bool,
    /// Print the graph of the tables
    ///
    /// Row by row, each table stands below the newer ones that share keys.
    #[arg(long, conflicts_with = "short")]
    pub(crate) graph: bool,
    /// Print that graph in the language of Graphviz
    #[arg(long, conflicts_with_all = ["short", "graph"])]
    pub(crate) dot: bool,
    /// Draw the graph into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["short", "graph", "dot"])]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The file
    ///
    /// A table, log, spill (`.spill`), manifest or CURRENT. A path, or a name in the directory of
    /// the store.
    pub(crate) file: PathBuf,
    /// Print values, not only their lengths
    #[arg(long)]
    pub(crate) values: bool,
    /// Print at most N items
    ///
    /// The entries of a table or a spill, the writes of a log, or the records of a manifest. 0
    /// prints an outline. The whole file is checked anyway. Without it: all.
    #[arg(long, visible_alias = "entries", value_name = "N")]
    #[arg(value_parser = lsmith_spec::parse_count)]
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The file that is written; it must not exist
    pub(crate) file: PathBuf,
    /// Also write sequence numbers
    ///
    /// Deletions are written too, so that the table goes where its age puts it. The keyspace must
    /// keep numbers.
    #[arg(long)]
    pub(crate) numbers: bool,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
}

/// A range of keys.
#[derive(Debug, Args)]
pub(crate) struct RangeArgs {
    /// The first key
    ///
    /// Without it: the first key of the keyspace.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) from: Option<OsString>,
    /// The end key, itself left out
    ///
    /// Without it: no end.
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
    /// Print at most N entries
    ///
    /// Without it: all.
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
