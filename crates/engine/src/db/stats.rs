//! The sizes and settings of a keyspace.

use super::Keyspace;
use lsmith_storage::table::ReadTable;
use lsmith_tree::{KeyRange, Size};

/// Sizes and settings of a keyspace at one moment; returned by [`Keyspace::stats`].
///
/// Logical bytes are key + value + 8 per entry. Other bytes are bytes of files or of memory. A
/// keyspace in a group has runs, tables and entries of its own. The other figures count its whole
/// group: policy, compression, memory, flushes, pressure and failures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// The name of the keyspace.
    pub name: String,
    /// The group that the keyspace belongs to, if it does.
    pub group: Option<String>,
    /// The merge policy, as a spec such as `tiered(ratio=4)`.
    pub policy: String,
    /// The codecs of the levels, youngest first, as in
    /// [`Builder::compression`](crate::Builder::compression).
    pub compression: String,
    /// The logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Logical bytes in the active and the sealed memtables.
    pub memory_bytes: u64,
    /// Bytes of memory that the memtables have allocated, roughly.
    pub memory_allocated_bytes: u64,
    /// Bytes of memory that the fence pointers and block positions of open tables take.
    pub fence_bytes: u64,
    /// Bytes of memory that the filters of open tables take.
    pub filter_bytes: u64,
    /// Bytes of memory that the profiles of open tables take.
    pub profile_bytes: u64,
    /// The number of runs on storage that hold entries of the keyspace.
    pub runs: u64,
    /// The number of table files that the tree names.
    pub tables: u64,
    /// Bytes that the files of all tables occupy, live and dead blocks together.
    pub table_bytes: u64,
    /// Bytes of those files that slices of the tree need.
    pub live_bytes: u64,
    /// Bytes of those files in blocks that no slice needs and that still occupy storage.
    pub dead_bytes: u64,
    /// Bytes of blocks that no slice needs and that were freed: holes in the files.
    pub punched_bytes: u64,
    /// The number of value files that tables refer to. Their bytes are in none of the figures
    /// above. Counts the whole group.
    pub value_files: u64,
    /// Bytes of these files. Files that only snapshots, readers or copies under way need are not
    /// among them.
    pub value_bytes: u64,
    /// Bytes of these files that tables do not refer to.
    pub value_garbage_bytes: u64,
    /// Logical bytes in all tables.
    pub logical_bytes: u64,
    /// The number of entries in all tables, with old versions and tombstones.
    pub entries: u64,
    /// The number of tombstones among those entries.
    pub tombstones: u64,
    /// The number of memtables flushed or merged since the keyspace was made.
    pub flushes: u64,
    /// How hard the merge policy holds writers back, from 0 (not at all) to 1 (completely).
    #[doc(alias("write stall", "back-pressure"))]
    pub pressure: f64,
    /// The errors of failed merges that wait to be tried again, and of panics.
    pub failures: Vec<String>,
}

impl Keyspace {
    /// Returns the sizes and settings of the keyspace as they are now. Looks at every table.
    pub fn stats(&self) -> KeyspaceStats {
        let shared = self.shared();
        let state = shared.state.lock();
        let tree = &state.view.tree;
        let memory = state.memory();
        let memory_bytes = tree.memory().bytes() + state.active.memtable.live_bytes();
        let mut tables = 0;
        let mut table_bytes = 0;
        let mut dead_bytes = 0;
        let mut punched_bytes = 0;
        // Outputs are cut between keyspaces of a group, so a table belongs to one of them.
        let own =
            state.tables.values().filter(|table| self.owns(&table.table().tree_table().range));
        for table in own {
            let (dead, punched) = table.dead_and_punched_bytes();
            tables += 1;
            table_bytes += table.held_bytes();
            dead_bytes += dead;
            punched_bytes += punched;
        }
        let values = state.value_totals();
        let mut runs = 0;
        let mut size = Size::default();
        for run in tree.disk_runs() {
            let own = run.slices().iter().filter(|slice| self.owns(slice.range()));
            let held: Vec<Size> = own.map(|slice| slice.size()).collect();
            runs += u64::from(!held.is_empty());
            size += held.into_iter().sum();
        }
        KeyspaceStats {
            name: self.name().to_string(),
            group: self.group().map(str::to_string),
            policy: state.policy.spec().to_string(),
            compression: state.compression.to_string(),
            memtable_bytes: shared.memtable_bytes,
            memory_bytes,
            memory_allocated_bytes: memory.memtables,
            fence_bytes: memory.fences,
            filter_bytes: memory.filters,
            profile_bytes: memory.profiles,
            runs,
            tables,
            table_bytes,
            live_bytes: table_bytes - dead_bytes,
            dead_bytes,
            punched_bytes,
            value_files: values.files,
            value_bytes: values.file_bytes,
            value_garbage_bytes: values.record_bytes - values.live_bytes,
            logical_bytes: size.bytes,
            entries: size.entries,
            tombstones: size.tombstones,
            flushes: tree.flushes(),
            pressure: shared.gate.pressure(),
            failures: shared.troubles(&state),
        }
    }

    /// Returns true if keys of `range`, of the tree, belong to the keyspace.
    fn owns(&self, range: &KeyRange) -> bool {
        self.member().is_none_or(|member| member.has(&range.start))
    }
}
