//! The half of an open keyspace that all threads share.

use super::{Active, Gate, KeyspaceState};
use crate::budget::Share;
use crate::context::Context;
use crate::event::Event;
use crate::group::Members;
use crate::manifest::KeyspaceFacts;
use crate::name::Name;
use crate::options::{FilterChoice, KeyspaceOptions, Options};
use crate::rules::Rules;
use crate::threads;
use crate::version::Version;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::fold::Operators;
use lsmith_storage::panics;
use lsmith_storage::sync::atomic::AtomicBool;
use lsmith_storage::sync::{ArcSwap, Mutex};
use lsmith_storage::table::TableOptions;
use std::sync::Arc;

/// An open keyspace. All threads share it. Its lock guards a [`KeyspaceState`].
#[derive(Debug)]
pub(crate) struct KeyspaceShared {
    pub(crate) id: u32,
    pub(crate) name: Name,
    /// The keyspaces that share the tree. `None` unless this is a group.
    pub(crate) members: Option<Members>,
    /// Logical bytes at which a memtable is sealed at the latest.
    pub(crate) memtable_bytes: u64,
    /// True if merges keep all sequence numbers.
    pub(crate) keeps_seqs: bool,
    /// The filters of its tables.
    pub(crate) filters: FilterChoice,
    /// The combine operators of its keys.
    pub(crate) rules: Arc<Rules>,
    /// True once the manifest says that the keyspace has range deletes.
    pub(crate) deletes_ranges: AtomicBool,
    /// The version that readers take.
    pub(crate) version: ArcSwap<Version>,
    /// Held by a thread that [commits](crate::commit): it writes a record of this keyspace to the
    /// manifest, and then changes the state.
    pub(crate) committing: Mutex<()>,
    pub(crate) state: Mutex<KeyspaceState>,
    /// True while no plan may begin, and those under way end: see [`halt`](KeyspaceShared::halt).
    pub(super) halted: AtomicBool,
    /// Held by a thread that ingests tables with sequence numbers of their own, or that halts the
    /// keyspace.
    pub(crate) ingesting: Mutex<()>,
    /// The active memtable of the state, for writers. Replaced under two locks: the lock of the
    /// log's writer and the lock of the state.
    pub(crate) active: ArcSwap<Active>,
    /// Set if a writer could not seal a full memtable, because another thread held the state.
    /// Changed under the lock of the log's writer.
    pub(crate) seal_due: AtomicBool,
    /// Holds writers back.
    pub(crate) gate: Gate,
    /// The message of the observer's first panic on a merging thread, until `Store::retry`.
    pub(crate) observer_panic: Mutex<Option<String>>,
}

impl KeyspaceShared {
    /// Returns the open keyspace `id`, which the manifest describes as `known`, with `state`. Its
    /// version shows the tree of `state`. Its memory counts in `share`.
    pub(super) fn new(
        id: u32,
        known: &KeyspaceFacts,
        state: KeyspaceState,
        share: &Share,
    ) -> KeyspaceShared {
        KeyspaceShared {
            id,
            name: Name::new(&known.name),
            memtable_bytes: known.memtable_bytes,
            keeps_seqs: known.keeps_seqs,
            filters: known.filters,
            rules: Arc::clone(&state.rules),
            deletes_ranges: AtomicBool::new(known.deletes_ranges),
            members: known.members.as_deref().map(Members::new),
            version: ArcSwap::from_pointee(state.version(None)),
            active: ArcSwap::new(Arc::clone(&state.active)),
            gate: Gate::new(&share.coming_free),
            seal_due: AtomicBool::new(false),
            halted: AtomicBool::new(false),
            committing: Mutex::default(),
            ingesting: Mutex::default(),
            observer_panic: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    /// Returns the bytes of memory of the active memtable, if sealing it would free them.
    pub(crate) fn sealable_bytes(&self) -> u64 {
        let active = || self.active.load().memtable.allocated_bytes() as u64;
        if self.gate.is_failing() { 0 } else { active() }
    }

    /// Returns the name of the keyspace that `key`, of the tree, belongs to.
    pub(crate) fn name_of(&self, key: &[u8]) -> String {
        let member = self.members.as_ref().and_then(|members| members.name_of(key));
        member.unwrap_or_else(|| self.name.to_string())
    }

    /// Calls the store's observer, if there is one, with `event`. Catches and keeps its panic on a
    /// merging thread. On the thread of a caller the panic goes up to the caller.
    pub(crate) fn observe(&self, context: &Context, event: &Event<'_>) {
        let Some(observer) = &context.options.observer else { return };
        let call = || observer.on_event(self.name.now(), event);
        if !threads::is_merging_thread() {
            return call();
        }
        if let Err(panic) = panics::catch(call) {
            tracing::error!(keyspace = %self.name, %panic, "the observer panicked");
            self.observer_panic.lock().get_or_insert_with(|| panic.to_string());
        }
    }

    /// Returns the options of its tables, in a store with `options`.
    pub(crate) fn table_options(&self, options: &Options) -> TableOptions {
        let member_bytes = u16::from(self.members.is_some());
        self.filters.table_options(&options.table, member_bytes)
    }

    /// Keeps the keyspace from coming to rest until the guard is dropped.
    pub(crate) fn keep_busy(&self) -> Busy<'_> {
        self.state.lock().leaving += 1;
        Busy(self)
    }

    /// Returns the guard for a caller that has already raised [`KeyspaceState::leaving`].
    pub(crate) fn busy_guard(&self) -> Busy<'_> {
        Busy(self)
    }

    /// Returns an error if the observer has panicked on a merging thread.
    pub(crate) fn observer_trouble(&self) -> Option<Error> {
        let message = self.observer_panic.lock().clone()?;
        Some(Error::new(
            ErrorKind::Panicked,
            format!("the observer panicked, which `Store::retry` forgets: {message}"),
        ))
    }

    /// Returns all reasons why the keyspace, whose state is `state`, cannot come to rest.
    pub(crate) fn troubles(&self, state: &KeyspaceState) -> Vec<String> {
        let failures = state.failures.iter().map(|failure| failure.error.to_string());
        let of_policy = state.policy_trouble().map(|error| error.to_string());
        let of_observer = self.observer_trouble().map(|error| error.to_string());
        failures.chain(of_policy).chain(of_observer).collect()
    }

    /// Publishes a version of `state`, the state of this keyspace, to readers.
    pub(crate) fn publish(&self, state: &KeyspaceState) {
        let before = self.version.load();
        self.version.store(Arc::new(state.version(Some(&before))));
    }

    /// Takes over the state of `fresh`, which a reader has just opened for the same keyspace.
    pub(crate) fn take_over(&self, fresh: &KeyspaceShared) {
        let mut state = self.state.lock();
        std::mem::swap(&mut *state, &mut *fresh.state.lock());
        self.active.store(Arc::clone(&state.active));
        self.version.store(fresh.version.load_full());
        self.name.change_to(fresh.name.now());
        if let (Some(members), Some(found)) = (&self.members, &fresh.members) {
            members.take_over(found);
        }
    }

    /// Returns the operators for folding memory; `None` if operands stay as they are. Where
    /// sequence numbers are kept, a table may bring an entry that belongs between two operands, so
    /// memory keeps them apart. Merges tell the tree which they have joined.
    pub(crate) fn memory_operators(&self) -> Option<Operators> {
        if self.keeps_seqs { None } else { self.rules.for_memory() }
    }

    /// Checks that the keyspace, or the group, has what `options` ask for. Their policy has its
    /// shortest spelling.
    ///
    /// # Errors
    /// Fails with `InvalidArgument`. The message names what was asked for and what is there.
    pub(crate) fn check_options(&self, options: &KeyspaceOptions) -> Result<()> {
        let what = if self.members.is_some() { "group" } else { "keyspace" };
        let refuse = |message: String| {
            let message = format!("the {what} `{}` exists with {message}", self.name);
            Err(Error::new(ErrorKind::InvalidArgument, message))
        };
        if let Some(asked) = &options.policy {
            let has = self.state.lock().policy.spec().to_string();
            let asked = asked.spec();
            if has != asked {
                return refuse(format!(
                    "the policy {has}, not {asked}: `Keyspace::set_merge_policy` changes it"
                ));
            }
        }
        let has = self.memtable_bytes;
        if let Some(asked) = options.memtable_bytes.filter(|&asked| asked != has) {
            return refuse(format!(
                "memtables of {has} bytes, not {asked}: only a new {what} can choose their size"
            ));
        }
        if let Some(message) = self.filters.conflict(options.filters()) {
            return refuse(format!("{message}: only a new {what} can choose them"));
        }
        match options.keep_numbers.filter(|&asked| asked != self.keeps_seqs) {
            Some(true) => refuse("forgotten sequence numbers: only a new one can keep them".into()),
            Some(false) => refuse("sequence numbers that are kept: that cannot be undone".into()),
            None => Ok(()),
        }
    }
}

/// Keeps a keyspace from coming to rest.
pub(crate) struct Busy<'a>(&'a KeyspaceShared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.state.lock().leaving -= 1;
    }
}
