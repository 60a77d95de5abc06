//! The account: everything that the manifest says of a store.

use super::bare;
use super::bounds;
use super::record::{KeyspaceRecord, LogRow, Record, Spill};
use super::taken::TakenMarks;
use crate::identity::Identity;
use crate::options::{FilterChoice, check_clock_name, check_name, check_operator_name};
use crate::rules::Expiry;
use lsmith_storage::bounds::{check_file, check_seq};
use lsmith_tree::{SeqNo, Tree, check_tree};
use std::collections::BTreeMap;

/// The compression of a keyspace whose record names none.
const NOT_COMPRESSED: &str = "none";

/// Everything that the manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) keyspaces: BTreeMap<u32, KeyspaceFacts>,
    /// The row of write-ahead logs. `None` in stores of earlier versions, which did not record it.
    pub(crate) logs: Option<LogRow>,
    /// All writes up to this sequence number, inclusive, were synced, in logs or elsewhere, when
    /// the manifest recorded it. 0 if nothing is known.
    pub(crate) synced_seq: SeqNo,
    /// An id above every file id in use.
    pub(crate) next_file: u64,
    /// An id above every keyspace id, dropped ones included.
    pub(crate) next_keyspace: u32,
    /// True if files of tables may have names in other stores.
    pub(crate) linked: bool,
    /// Who the store is. `None` in stores of earlier versions, until they are opened for writing.
    pub(crate) identity: Option<Identity>,
    /// The stamp of the last backup whose state the store has been in.
    pub(crate) backup: Option<u128>,
    /// The name of the clock by which entries expire. `None` if none do, and in stores of earlier
    /// versions, which did not record it.
    pub(crate) clock: Option<String>,
}

/// What the manifest says of a keyspace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyspaceFacts {
    pub(crate) name: String,
    pub(crate) policy: String,
    /// The codecs of the tables, level by level, in the form that `Compression` parses.
    pub(crate) compression: String,
    pub(crate) memtable_bytes: u64,
    /// True if merges keep all sequence numbers.
    pub(crate) keeps_seqs: bool,
    /// The filters of its tables.
    pub(crate) filters: FilterChoice,
    /// True if ranges were deleted.
    pub(crate) deletes_ranges: bool,
    /// The names of the keyspaces that share the tree, in the order of their ids. `None` unless
    /// this is a group.
    pub(crate) members: Option<Vec<String>>,
    /// The names of combine operators, by the id of the keyspace in its group; 0 for a keyspace in
    /// none.
    pub(crate) operators: BTreeMap<u8, String>,
    /// How entries expire, of keyspaces where they do, by the same id.
    pub(crate) expiries: BTreeMap<u8, Expiry>,
    /// The tree without memory, which the write-ahead log holds, and without profiles, which the
    /// tables hold.
    pub(crate) tree: Tree,
    /// All writes up to this sequence number, inclusive, are in tables or have left nothing.
    pub(crate) flushed_seq: SeqNo,
    /// Marks of writes above `flushed_seq` that are in tables too.
    pub(crate) taken: TakenMarks,
    /// The spill that opening reads before the log.
    pub(crate) spill: Option<Spill>,
}

impl KeyspaceFacts {
    /// Returns the facts of a new, empty keyspace.
    pub(crate) fn new(keyspace: KeyspaceRecord, compression: String) -> KeyspaceFacts {
        let KeyspaceRecord { name, policy, memtable_bytes, .. } = keyspace;
        KeyspaceFacts {
            name,
            policy,
            compression,
            memtable_bytes,
            keeps_seqs: false,
            filters: FilterChoice::default(),
            deletes_ranges: false,
            members: None,
            operators: BTreeMap::new(),
            expiries: BTreeMap::new(),
            tree: Tree::new(),
            flushed_seq: SeqNo::default(),
            taken: TakenMarks::default(),
            spill: None,
        }
    }

    /// Returns true if replay must skip write `seq` to `key` in the log, because the write is in a
    /// table or in the spill, or has left nothing.
    pub(crate) fn is_covered(&self, key: &[u8], seq: SeqNo) -> bool {
        self.spill.is_some_and(|spill| seq <= spill.newest) || self.has_left_memory(key, seq)
    }

    /// Returns true if write `seq` to `key` has left memory: it is in a table, or has left nothing.
    pub(crate) fn has_left_memory(&self, key: &[u8], seq: SeqNo) -> bool {
        seq <= self.flushed_seq || seq <= self.taken.newest_of(key)
    }

    /// Returns true if the range delete with sequence number `seq` is in the tree, or is done with.
    /// Every record that says of some writes that they have left memory, or are in a copy, puts all
    /// older range deletes into the tree, or a record before it does.
    pub(crate) fn has_in_tree(&self, seq: SeqNo) -> bool {
        seq <= self.durable_seq()
    }

    /// Returns the sequence number up to which all writes of this keyspace are in tables or in the
    /// spill, or have left nothing.
    pub(crate) fn complete_seq(&self) -> SeqNo {
        self.flushed_seq.max(self.spill.map(|spill| spill.newest).unwrap_or_default())
    }

    /// Returns a sequence number up to which the writes of all keyspaces are durable: in tables, in
    /// spills, or in logs that were synced before the manifest recorded the sequence number.
    pub(crate) fn durable_seq(&self) -> SeqNo {
        self.complete_seq().max(self.taken.newest_of_all())
    }

    /// Forgets marks and spills that `flushed_seq` makes superfluous.
    fn tidy(&mut self) {
        self.taken.forget(self.flushed_seq);
        self.spill = self.spill.filter(|spill| spill.newest > self.flushed_seq);
    }
}

impl Account {
    /// Applies one record.
    ///
    /// # Errors
    /// Fails if the record is out of bounds or contradicts the account. The account may then hold
    /// part of the record.
    pub(crate) fn take(&mut self, record: Record) -> std::result::Result<(), String> {
        record.seqs().into_iter().try_for_each(check_seq)?;
        match record {
            Record::NextFile(file_id) => self.next_file = self.next_file.max(file_id),
            Record::Keyspace(keyspace) => self.make_keyspace(keyspace, NOT_COMPRESSED.into())?,
            Record::CompressedKeyspace(keyspace, compression) => {
                self.make_keyspace(keyspace, compression)?
            }
            Record::NumberedKeyspace(keyspace, compression) => {
                let id = keyspace.id;
                self.make_keyspace(keyspace, compression)?;
                self.keyspace(id)?.keeps_seqs = true;
            }
            Record::Compression { keyspace, compression } => {
                self.keyspace(keyspace)?.compression = compression;
            }
            Record::Group(group, compression) => {
                let id = group.id;
                self.make_keyspace(group, compression)?;
                self.keyspace(id)?.members = Some(Vec::new());
            }
            Record::Member { group, member, name } => self.make_member(group, member, name)?,
            Record::Operator { operator, made } => self.make_combining(*made, operator)?,
            Record::Expiry { expiry, made } => self.make_expiring(*made, expiry)?,
            Record::Filters { filters, made } => self.make_filtered(*made, filters)?,
            Record::Tree { keyspace, flushed_seq, taken, tree } => {
                bounds::check_tree(&tree)?;
                let tree = bare::restore_tree(*tree)?;
                bounds::check_tree(&tree)?;
                check_tree(&tree).map_err(|error| error.to_string())?;
                self.next_file = self.next_file.max(tree.next_table().0);
                let state = self.keyspace(keyspace)?;
                state.tree = tree;
                state.flushed_seq = flushed_seq;
                state.taken = taken.into_iter().collect();
            }
            Record::DeletesRanges { keyspace } => self.keyspace(keyspace)?.deletes_ranges = true,
            Record::Policy { keyspace, policy } => self.keyspace(keyspace)?.policy = policy,
            Record::Logs(logs) => self.take_logs(logs),
            Record::Synced(seq) => self.synced_seq = self.synced_seq.max(seq),
            Record::Change(change) => self.change(change)?,
            Record::Linked => self.linked = true,
            Record::Identity(identity) => self.identity = Some(identity),
            Record::Backup(stamp) => self.backup = Some(stamp),
            Record::Clock(name) => self.set_clock(name)?,
            Record::Spill { keyspace, spill } => {
                let state = self.keyspace(keyspace)?;
                // The file holds no write under a mark that was set before.
                state.taken.forget(spill.newest);
                state.spill = Some(spill);
                self.next_file = self.next_file.max(spill.file.saturating_add(1));
            }
            Record::Together(edits) => edits.into_iter().try_for_each(|edit| self.take(edit))?,
            Record::Edit { keyspace, flushed_seq, taken, edit } => {
                let state = self.keyspace(keyspace)?;
                let mut edit = bare::restore(edit, &state.tree)?;
                bounds::check_edit(&edit)?;
                edit.apply_read_to(&mut state.tree).map_err(|error| error.to_string())?;
                bounds::check_counts(&state.tree)?;
                state.flushed_seq = state.flushed_seq.max(flushed_seq);
                state.taken.extend(&taken);
                state.tidy();
                let next = state.tree.next_table().0;
                self.next_file = self.next_file.max(next);
            }
        }
        check_file(self.next_file)
    }

    /// Notes the row of logs. The newest log stays named: who wrote the record may not have known
    /// of a log that has begun since.
    fn take_logs(&mut self, logs: LogRow) {
        let newest = self.logs.map_or(0, |known| known.newest).max(logs.newest);
        self.next_file = self.next_file.max(newest.saturating_add(1));
        self.logs = Some(LogRow { newest, ..logs });
    }

    fn make_keyspace(
        &mut self,
        keyspace: KeyspaceRecord,
        compression: String,
    ) -> std::result::Result<(), String> {
        bounds::check_keyspace(&keyspace)?;
        self.check_new_name(&keyspace.name)?;
        let id = keyspace.id;
        self.next_keyspace = self.next_keyspace.max(id + 1);
        let before = self.keyspaces.insert(id, KeyspaceFacts::new(keyspace, compression));
        before.map_or(Ok(()), |_| Err(format!("keyspace {id} is made twice")))
    }

    fn make_combining(
        &mut self,
        made: Record,
        operator: String,
    ) -> std::result::Result<(), String> {
        check_operator_name(&operator).map_err(|error| error.to_string())?;
        let (state, member_id) = self.make_with(made)?;
        state.operators.insert(member_id, operator);
        Ok(())
    }

    fn make_expiring(&mut self, made: Record, expiry: Expiry) -> std::result::Result<(), String> {
        let (state, member_id) = self.make_with(made)?;
        state.expiries.insert(member_id, expiry);
        Ok(())
    }

    fn make_filtered(
        &mut self,
        made: Record,
        filters: FilterChoice,
    ) -> std::result::Result<(), String> {
        filters.check().map_err(|error| error.to_string())?;
        let id = made.makes_tree().ok_or("expected the record of a keyspace or a group")?;
        self.take(made)?;
        self.keyspace(id)?.filters = filters;
        Ok(())
    }

    fn set_clock(&mut self, name: String) -> std::result::Result<(), String> {
        check_clock_name(&name).map_err(|error| error.to_string())?;
        match self.clock.replace(name).filter(|before| self.clock.as_ref() != Some(before)) {
            Some(before) => Err(format!("the store has the clock {before}, and another one")),
            None => Ok(()),
        }
    }

    /// Applies `made`, which must make a keyspace. Returns its tree, and its id there.
    fn make_with(&mut self, made: Record) -> std::result::Result<(&mut KeyspaceFacts, u8), String> {
        let (id, member_id) = made.makes().ok_or("expected the record of a keyspace")?;
        self.take(made)?;
        Ok((self.keyspace(id)?, member_id))
    }

    fn make_member(
        &mut self,
        group: u32,
        member_id: u8,
        name: String,
    ) -> std::result::Result<(), String> {
        check_name(&name).map_err(|error| error.to_string())?;
        self.check_new_name(&name)?;
        let members = &mut self.keyspace(group)?.members;
        let members = members.as_mut().ok_or_else(|| format!("keyspace {group} is no group"))?;
        if members.len() != usize::from(member_id) {
            let next = members.len();
            return Err(format!("expected keyspace {next} of group {group}, found {member_id}"));
        }
        members.push(name);
        Ok(())
    }

    /// Fails if a keyspace or a group is called `name`.
    pub(super) fn check_new_name(&self, name: &str) -> std::result::Result<(), String> {
        let has_name = |state: &KeyspaceFacts| {
            state.name == name || state.members.iter().flatten().any(|member| member == name)
        };
        if self.keyspaces.values().any(has_name) {
            return Err(format!("two keyspaces are called {name}"));
        }
        Ok(())
    }

    pub(super) fn keyspace(&mut self, id: u32) -> std::result::Result<&mut KeyspaceFacts, String> {
        self.keyspaces.get_mut(&id).ok_or_else(|| format!("there is no keyspace {id}"))
    }

    /// Returns records from which the account can be rebuilt. The last tree of them is the last
    /// record.
    pub(super) fn records(&self) -> Vec<Record> {
        let keyspaces = self.keyspaces.iter().flat_map(|(&id, state)| {
            let made = KeyspaceRecord {
                id,
                name: state.name.clone(),
                policy: state.policy.clone(),
                memtable_bytes: state.memtable_bytes,
            };
            let keyspace = match (&state.members, &*state.compression) {
                (Some(_), compression) => Record::Group(made, compression.to_string()),
                (None, compression) if state.keeps_seqs => {
                    Record::NumberedKeyspace(made, compression.to_string())
                }
                (None, NOT_COMPRESSED) => Record::Keyspace(made),
                (None, compression) => Record::CompressedKeyspace(made, compression.to_string()),
            };
            let keyspace = keyspace.filtered(state.filters);
            let ruled = |member_id: u8, made: Record| {
                made.ruled(state.operators.get(&member_id), state.expiries.get(&member_id))
            };
            let keyspace = if state.members.is_none() { ruled(0, keyspace) } else { keyspace };
            let member = move |(member_id, name): (usize, &String)| {
                let member_id = u8::try_from(member_id).expect("its record had the number");
                ruled(
                    member_id,
                    Record::Member { group: id, member: member_id, name: name.clone() },
                )
            };
            let members = state.members.iter().flatten().enumerate().map(member);
            let ranges = state.deletes_ranges.then_some(Record::DeletesRanges { keyspace: id });
            let spill = state.spill.map(|spill| Record::Spill { keyspace: id, spill });
            let tree = Record::Tree {
                keyspace: id,
                flushed_seq: state.flushed_seq,
                taken: state.taken.marks().collect(),
                tree: Box::new(bare::shorten_tree(state.tree.clone())),
            };
            std::iter::once(keyspace).chain(members).chain(ranges).chain(spill).chain([tree])
        });
        let next_file = std::iter::once(Record::NextFile(self.next_file));
        let synced = (self.synced_seq > SeqNo(0)).then_some(Record::Synced(self.synced_seq));
        let logs = self.logs.map(Record::Logs).into_iter().chain(synced);
        let linked = self.linked.then_some(Record::Linked);
        let identity = self.identity.map(Record::Identity);
        let clock = self.clock.clone().map(Record::Clock);
        let backup = self.backup.map(Record::Backup);
        let of_store = identity.into_iter().chain(linked).chain(backup).chain(clock);
        next_file.chain(logs).chain(of_store).chain(self.next_record()).chain(keyspaces).collect()
    }
}

/// Fails if the tree of a keyspace is not legal.
pub(super) fn check_facts(state: &KeyspaceFacts) -> std::result::Result<(), String> {
    check_tree(&state.tree).map_err(|error| error.to_string())?;
    bare::check_known(&state.tree)
}
