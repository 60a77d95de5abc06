//! Tests of the store through its public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the store is tested on files, with threads"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

#[macro_use]
mod disk_env;
mod dropped;
mod erased;
mod erased_sealed;
mod erased_ties;

mod arrivals;
mod arrivals_random;
mod backup;
mod backup_stops;
mod basic;
mod batches;
mod behind;
mod beside;
mod beside_damage;
mod beside_files;
mod blast;
mod budget;
mod by_part;
mod changes;
mod changes_damage;
mod checkpoint;
mod checkpoint_kinds;
mod checkpoint_stops;
mod clocks;
mod close;
mod cold;
mod combine;
mod combine_calls;
mod commit;
mod compression;
mod costs;
mod crafted;
mod crash;
mod damage;
mod damage_many;
mod destroy;
mod directories;
mod expiry;
mod faults;
mod filters;
mod format;
mod full;
mod gate;
mod groups;
mod histograms;
mod history;
mod hostile;
mod identity;
mod ingest;
mod ingest_erases;
mod ingest_kinds;
mod ingest_load;
mod ingest_operands;
mod ingest_replace;
mod ingest_trees;
mod inspect;
mod keyspace_stops;
mod keyspaces;
mod keyspaces_many;
mod killed_beside;
mod left_out;
mod lives;
mod load;
mod load_snapshots;
mod log_files;
mod log_lives;
mod log_row;
mod mapped;
mod merge_memory;
mod metrics;
mod model;
mod moments;
mod mutated;
mod mutated_sizes;
mod numbered;
mod operators;
mod panics;
mod pool;
mod power;
mod prefixes;
mod reads;
mod reads_few;
mod refused;
mod reopen;
mod repair;
mod reseal;
mod reseal_trees;
mod rogue;
mod scripts;
mod seal_due;
mod soak;
mod space;
mod stop_points;
mod stop_trees;
mod stops;
mod strangers;
mod stuck_logs;
mod threads;
mod transaction_ends;
mod transaction_inserts;
mod transaction_operands;
mod transactions;
mod trees;
mod trees_together;
mod watchdog;
mod written;

use lsmith_fuzz::dice;
