//! Opens a keyspace as the manifest describes it.

use super::{Active, KeyspaceShared, KeyspaceState, Policy, Requests};
use crate::compression::Compression;
use crate::context::Context;
use crate::leases::Lease;
use crate::manifest::KeyspaceFacts;
use crate::rules::Rules;
use crate::version::{Reclaim, TableHandle};
use lsmith_policy::MergePolicy;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::ReadTable;
use lsmith_tree::{Causes, SeqNo, Table, TableId, Tree, TreeView};
use rustc_hash::FxHashMap;
use std::collections::hash_map;
use std::sync::Arc;

/// What the opening of a keyspace begins with.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceBase {
    /// The policy, if the caller has it. Otherwise it is built from its spec.
    pub(crate) policy: Option<Arc<dyn MergePolicy>>,
    /// Tables that are open already.
    pub(crate) tables: FxHashMap<TableId, Arc<TableHandle>>,
    /// The lease of a reader on what it opens.
    pub(crate) lease: Option<Arc<Lease>>,
}

/// Opens keyspace `id`, which the manifest describes as `known`, with an empty memtable.
///
/// # Errors
/// Fails with `Unsupported` if the policy, the compression or an operator does not exist, with
/// `Corruption` if a table differs from its description in the manifest, and as opening a table
/// does.
pub(crate) fn open_keyspace(
    context: &Context,
    id: u32,
    known: &KeyspaceFacts,
    base: KeyspaceBase,
) -> Result<Arc<KeyspaceShared>> {
    let options = &context.options;
    let unsupported = |message| Error::new(ErrorKind::Unsupported, message).at(&options.dir);
    let stored = || options.stored_policy(&known.policy);
    let policy = base.policy.clone().map_or_else(stored, Ok).map_err(|error| {
        let name = &known.name;
        unsupported(format!(
            "cannot build the policy of keyspace {name}: {error}; a policy of your own comes with \
             `Builder::policy` or `Builder::registry`"
        ))
    })?;
    let compression = Compression::parse(&known.compression)
        .map_err(|error| unsupported(format!("keyspace {}: {error}", known.name)))?;
    let rules = Rules::new(known.members.is_some(), &options.clock);
    let alone = std::slice::from_ref(&known.name);
    let names = known.members.as_deref().unwrap_or(alone);
    for (member_id, name) in (0..).zip(names) {
        rules.set(member_id, name, known.expiries.get(&member_id).copied(), &options.filters);
        let Some(operator) = known.operators.get(&member_id) else { continue };
        let combine = options.operators.of_keyspace(operator, name, &options.dir)?;
        rules.set_operator(member_id, name, combine);
    }
    let tables = open_tables(context, &known.tree, &base)?;
    let with_profiles = |named: &Arc<Table>| {
        let found = tables[&named.id].table().tree_table();
        // The file does not say when it was begun, which range deletes were applied, and how old
        // its tombstones are.
        let Table { born, deletes_applied, oldest_tombstone, .. } = **named;
        match (born, deletes_applied, oldest_tombstone) {
            (0, SeqNo(0), 0) => Arc::clone(found),
            _ => Arc::new(Table { born, deletes_applied, oldest_tombstone, ..Table::clone(found) }),
        }
    };
    let tree = known.tree.clone().with_tables(with_profiles);
    let mut view = TreeView::new(tree, known.memtable_bytes);
    view.block_bytes = options.table.block_bytes as u64;
    let state = KeyspaceState {
        policy: Policy::new(policy, options.lockstep),
        compression,
        rules,
        view,
        coming: None,
        active: Active::new(context),
        sealed: Vec::new(),
        vanished: None,
        spill: known.spill,
        tables,
        reclaim: Reclaim::new(&context.leftovers, &context.leases, base.lease),
        failures: Vec::new(),
        failed_in_row: 0,
        leaving: 0,
        arrivals: 0,
        values: Arc::clone(&context.values),
        causes: context.options.histograms.then(Causes::default),
        kept_range: None,
        kept_for: None,
        requests: Requests::default(),
        at_rest: false,
        owed_bytes: None,
        has_worked: false,
        is_dropped: false,
    };
    Ok(Arc::new(KeyspaceShared::new(id, known, state, &context.share)))
}

/// Opens all tables of `tree`, the manifest's, and checks that each is as the manifest describes
/// it.
fn open_tables(
    context: &Context,
    tree: &Tree,
    base: &KeyspaceBase,
) -> Result<FxHashMap<TableId, Arc<TableHandle>>> {
    let options = &context.options;
    let mut tables: FxHashMap<_, _> = FxHashMap::default();
    for slice in tree.disk_runs().flat_map(|run| run.slices()) {
        let named = slice.table();
        let hash_map::Entry::Vacant(place) = tables.entry(named.id) else { continue };
        let is_named = |open: &&Arc<TableHandle>| open.table().tree_table().root == named.root;
        if let Some(open) = base.tables.get(&named.id).filter(is_named) {
            place.insert(Arc::clone(open));
            continue;
        }
        let mut handle = TableHandle::open_root(&context.tables(), named.id, named.root)?;
        if handle.is_undated() && named.seq_min == named.seq_max {
            let handle = Arc::get_mut(&mut handle).expect("this is the only reference so far");
            handle.date(named.seq_max);
        }
        let found = handle.table().tree_table();
        let agrees = (found.size, &found.range) == (named.size, &named.range)
            && (found.seq_min, found.seq_max) == (named.seq_min, named.seq_max);
        if !agrees {
            let path = numbered(&options.dir, FileKind::Table, named.id.0);
            let message = "the table differs from its description in the manifest";
            return Err(Error::corruption(&path, 0, message));
        }
        place.insert(handle);
    }
    Ok(tables)
}
