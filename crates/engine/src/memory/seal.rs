//! Seals the active memtable of a keyspace.

use super::fold::{Folding, NewestRun, fold_over};
use crate::context::Context;
use crate::event::Event;
use crate::keyspace::{Active, KeyspaceShared, KeyspaceState, Replacement, SealedRun, WriteSpan};
use lsmith_storage::fold::Hiding;
use lsmith_storage::memtable::{Memtable, Sealed};
use lsmith_tree::{AddPlace, KeyRange, Profile, RangeDeletes, RunId, Size, Slice, Table, TableId};
use std::sync::Arc;

/// Seals the active memtable, if it is not empty. It becomes the newest run in memory. In lockstep,
/// under a policy that counts in blocks, it is folded with the run in memory at once.
pub(crate) fn seal(context: &Context, keyspace: &KeyspaceShared, state: &mut KeyspaceState) {
    let Some((oldest, newest)) = state.active.memtable.seq_range() else { return };
    let step = context.one_step();
    let full = std::mem::replace(&mut state.active, Active::new(context));
    keyspace.active.store(Arc::clone(&state.active));
    let memtable = Arc::clone(&full.memtable);
    // A memtable with a large entry is one memtable, however large.
    let owed = memtable.live_bytes().min(keyspace.memtable_bytes);
    state.owed_bytes = state.owed_bytes.map(|before| before + owed);
    let writes = WriteSpan { oldest, newest, log: full.log() };
    state.note_reads();
    let folds = context.options.lockstep && state.policy.wants_blocks();
    if folds && !state.is_memory_reserved() {
        seal_folded(context, keyspace, state, memtable, writes);
    } else {
        seal_as_written(context, state, memtable, writes);
    }
    keyspace.publish(state);
    step.over();
    // The policy and the observer, which others have written, may panic from here on.
    keyspace.gate.note(state);
    keyspace.observe(context, &Event::Sealed { tree: &state.view.tree });
}

/// Replaces all runs in memory by one that folds `memtable` over them.
fn seal_folded(
    context: &Context,
    keyspace: &KeyspaceShared,
    state: &mut KeyspaceState,
    memtable: Arc<Memtable>,
    writes: WriteSpan,
) {
    let version = keyspace.version.load();
    let size = live_size(&memtable);
    let range_deletes = memtable.range_deletes().without_writes();
    let hiding = Hiding::keeping(RangeDeletes::all([&version.all_range_deletes(), &range_deletes]));
    let newest = NewestRun { cursor: Sealed::Written(memtable).cursor(), size };
    let older: Vec<_> = version.memory.iter().collect();
    let operators = keyspace.memory_operators();
    let block_bytes = state.view.block_bytes;
    let folding = Folding { context, operators, hiding, block_bytes };
    let folded = fold_over(&folding, newest, &older)
        .expect("reads of memory never fail, and the store is not closing");
    let old: Vec<RunId> = state.sealed.iter().map(|sealed| sealed.run).collect();
    let all = state.writes_of(&old).map_or(writes, |older| writes.with(older));
    let place = AddPlace::Memory;
    state.replace_memory(&old, Replacement { folded, writes: all, place, range_deletes });
}

/// Returns the size of the newest versions in a memtable, without a count of tombstones.
fn live_size(memtable: &Memtable) -> Size {
    Size { bytes: memtable.live_bytes(), entries: memtable.entries(), tombstones: 0 }
}

/// Makes `memtable` the newest run in memory, as it is.
fn seal_as_written(
    context: &Context,
    state: &mut KeyspaceState,
    memtable: Arc<Memtable>,
    writes: WriteSpan,
) {
    let (first, last) = memtable.key_range().expect("the memtable is not empty");
    let table = Table {
        expires: 0,
        oldest_tombstone: 0,
        id: TableId(context.new_file_id()),
        root: 0,
        dead_bytes: 0,
        born: 0,
        deletes_applied: lsmith_tree::SeqNo(0),
        range: KeyRange::inclusive(&first, &last),
        size: live_size(&memtable),
        seq_min: writes.oldest,
        seq_max: writes.newest,
        profile: Profile::default(),
    };
    let run = state.add_to_memory(Slice::whole(table));
    let range_deletes = memtable.range_deletes().without_writes();
    state
        .sealed
        .insert(0, SealedRun { run, sealed: Sealed::Written(memtable), writes, range_deletes });
}

/// Seals the active memtable of `keyspace` if it is full, while the store is being opened. Logs may
/// hold more than fits into one memtable.
pub(crate) fn seal_while_opening(context: &Context, keyspace: &KeyspaceShared) {
    let mut state = keyspace.state.lock();
    if !state.active.is_full(state.policy.seal_bytes(&state.view)) {
        return;
    }
    let Some((oldest, newest)) = state.active.memtable.seq_range() else { return };
    let full = std::mem::replace(&mut state.active, Active::new(context));
    keyspace.active.store(Arc::clone(&state.active));
    let writes = WriteSpan { oldest, newest, log: full.log() };
    seal_as_written(context, &mut state, Arc::clone(&full.memtable), writes);
    keyspace.publish(&state);
}
