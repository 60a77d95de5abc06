//! From operations on a tree to what is recorded of them.

use crate::context::Context;
use crate::group::MEMBER_BYTES;
use crate::keyspace::KeyspaceShared;
use crate::recorder::{KeyspaceLine, Picked};
use lsmith_storage::expiry::{EXPIRY_BYTES, expires_at};
use lsmith_storage::format::OpKind;
use lsmith_tree::EntryKind;
use std::sync::Arc;

/// Records the write of `key`, as the tree has it, if the hash picks the key.
#[inline(always)]
pub(crate) fn note_write(
    context: &Context,
    keyspace: &Arc<KeyspaceShared>,
    kind: OpKind,
    key: &[u8],
    value: &[u8],
) {
    let user = user_key(keyspace, key);
    if kind == OpKind::DeleteRange || context.recorder.wants(user) {
        note_picked_write(context, keyspace, kind, key, value);
    }
}

#[cold]
fn note_picked_write(
    context: &Context,
    keyspace: &Arc<KeyspaceShared>,
    kind: OpKind,
    key: &[u8],
    value: &[u8],
) {
    let user = user_key(keyspace, key);
    let bytes = value.len();
    let picked = match kind {
        OpKind::Entry(EntryKind::Put | EntryKind::Insert) => Picked::Put(user, bytes),
        // Nobody writes references.
        OpKind::Entry(EntryKind::PutReference | EntryKind::InsertReference) => return,
        OpKind::Entry(EntryKind::Delete | EntryKind::Remove) => Picked::Delete(user),
        OpKind::Entry(EntryKind::Combine) => Picked::Combine(user, bytes),
        OpKind::Entry(EntryKind::Expiring) => {
            let life = keyspace.rules.micros_until(expires_at(value));
            Picked::PutUntil(user, bytes.saturating_sub(EXPIRY_BYTES), life)
        }
        // The end of all keys of a member is the id behind its own.
        OpKind::DeleteRange => Picked::DeleteRange(
            user,
            match keyspace.members {
                Some(_) if value.first() != key.first() => &[],
                Some(_) => &value[MEMBER_BYTES..],
                None => value,
            },
        ),
    };
    note(context, keyspace, key, &picked);
}

/// Records `picked` of the keyspace that `key`, as the tree has it, belongs to.
pub(crate) fn note(context: &Context, keyspace: &KeyspaceShared, key: &[u8], picked: &Picked<'_>) {
    let member = keyspace.members.as_ref().and_then(|_| key.first().copied());
    let describe = || {
        // An observer may drop an iterator while it holds the state: nothing may wait for it here.
        let state = keyspace.state.try_lock();
        let policy = state.map_or("unknown".to_owned(), |state| state.policy.spec().to_string());
        (keyspace.name_of(key), policy)
    };
    let line = KeyspaceLine {
        id: (keyspace.id, member),
        memtable_bytes: keyspace.memtable_bytes,
        describe: &describe,
    };
    context.recorder.note(&line, picked);
}

/// Returns `key`, as the tree has it, without the id of a member.
#[inline]
pub(crate) fn user_key<'a>(keyspace: &KeyspaceShared, key: &'a [u8]) -> &'a [u8] {
    let from = if keyspace.members.is_some() { MEMBER_BYTES } else { 0 };
    key.get(from..).unwrap_or_default()
}
