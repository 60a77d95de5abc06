//! Groups: keyspaces that share one tree, so that they merge together.
//!
//! In AsterixDB the indexes of a dataset follow the merges of its primary index, so that run `i` of
//! each covers the same writes (Mao et al., "Experimental Evaluation of Bounded-Depth LSM Merge
//! Policies", paragraph on secondary indexes). Here that holds by construction. The keyspaces of a
//! group share a memtable, a tree and a policy: in front of each key stands one byte, the id of its
//! keyspace. So they are sealed at the same write, one plan merges the same runs of all of them,
//! and one record of the manifest commits it. No crash can come between two of them.
//!
//! A run has tables of its own for each keyspace that has entries in it: outputs are cut where the
//! first byte changes. A keyspace without entries among the writes of a run has no table in it.

use crate::name::Name;
use bytes::Bytes;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::RwLock;
use lsmith_tree::{Key, KeyRange};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// The most keyspaces of a group: their ids are bytes.
const MEMBERS_MAX: usize = 1 << 8;

/// The bytes that stand in front of a key of a group's keyspace.
pub(crate) const MEMBER_BYTES: usize = 1;

/// A keyspace of a group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The first byte of its keys in the tree of the group.
    pub(crate) id: u8,
    pub(crate) name: Arc<Name>,
}

impl Member {
    /// Returns the id of the keyspace in its group.
    pub(crate) fn id(&self) -> u8 {
        self.id
    }

    /// Returns `key` as the tree of the group has it. An empty key stays empty, so that it is
    /// refused as elsewhere.
    pub(crate) fn stored_key<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        if key.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(self.put_before(key)) }
    }

    fn put_before(&self, key: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(MEMBER_BYTES + key.len());
        stored.push(self.id);
        stored.extend_from_slice(key);
        stored
    }

    /// Returns the bounds, in the tree of the group, of the keys of this keyspace within `lower`
    /// and `upper`.
    pub(crate) fn stored_bounds(
        &self,
        (lower, upper): (Bound<Bytes>, Bound<Bytes>),
    ) -> (Bound<Bytes>, Bound<Bytes>) {
        let stored = |key: Bytes| Bytes::from(self.put_before(&key));
        let lower = match lower {
            Bound::Unbounded => Bound::Included(stored(Bytes::new())),
            bound => bound.map(stored),
        };
        let upper = match (upper, self.id.checked_add(1)) {
            (Bound::Unbounded, Some(next)) => Bound::Excluded(Bytes::from(vec![next])),
            (bound, _) => bound.map(stored),
        };
        (lower, upper)
    }

    /// Returns the range of the keys of this keyspace in the tree of the group.
    pub(crate) fn range(&self) -> KeyRange {
        let end = self.id.checked_add(1).map(|next| Key::from(vec![next]));
        KeyRange { start: Key::from(vec![self.id]), end }
    }

    /// Returns true if `key`, of the tree of the group, belongs to this keyspace.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        key.first() == Some(&self.id)
    }
}

/// The keyspaces of a group.
#[derive(Debug, Default)]
pub(crate) struct Members(RwLock<Vec<Arc<Name>>>);

impl Members {
    /// Returns the keyspaces with `names`, in the order of their ids.
    pub(crate) fn new(names: &[String]) -> Members {
        Members(RwLock::new(names.iter().map(|name| Arc::new(Name::new(name))).collect()))
    }

    /// Returns all keyspaces, in the order of their ids.
    pub(crate) fn all(&self) -> Vec<Member> {
        let with_id = |(name, id): (&Arc<Name>, u8)| Member { id, name: Arc::clone(name) };
        self.0.read().iter().zip(0..=u8::MAX).map(with_id).collect()
    }

    /// Returns the keyspace called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<Member> {
        self.all().into_iter().find(|member| member.name.now() == name)
    }

    /// Returns the name of the keyspace that `key`, of the tree of the group, belongs to.
    pub(crate) fn name_of(&self, key: &[u8]) -> Option<String> {
        self.0.read().get(usize::from(*key.first()?)).map(|name| name.to_string())
    }

    /// Returns the id of the next keyspace.
    ///
    /// # Errors
    /// `InvalidArgument` if the group, called `group`, is full.
    pub(crate) fn next_id(&self, group: &str) -> Result<u8> {
        let count = self.0.read().len();
        u8::try_from(count).map_err(|_| {
            let message = format!(
                "the group `{group}` has {count} keyspaces: expected at most {MEMBERS_MAX}"
            );
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }

    /// Takes over names and new keyspaces from `found`, the same group as a reader finds it now.
    pub(crate) fn take_over(&self, found: &Members) {
        let known = self.all();
        for (index, member) in found.all().iter().enumerate() {
            match known.get(index) {
                Some(known) => known.name.change_to(member.name.now()),
                None => self.push(member.name.now()),
            }
        }
    }

    /// Adds the keyspace `name`, with the next id.
    pub(crate) fn push(&self, name: &str) {
        self.0.write().push(Arc::new(Name::new(name)));
    }
}
