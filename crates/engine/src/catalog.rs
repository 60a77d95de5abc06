//! Makes, drops and renames keyspaces, and changes their policy and their compression.

mod changes;

use crate::compression::Compression;
use crate::context::Context;
use crate::keyspace::{KeyspaceBase, KeyspaceShared, Policy, open_keyspace};
use crate::keyspaces::{ByName, Keyspaces, Named, find};
use crate::manifest::{KeyspaceRecord, Manifest, Record};
use crate::options::{KeyspaceOptions, bad_policy, check_memtable, check_name};
use crate::wal::Wal;
use lsmith_policy::{PolicyChoice, check_group_policy};
use lsmith_storage::combine::Combine;
use lsmith_storage::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Makes, drops and renames keyspaces, and changes their policy and their compression.
#[derive(Debug)]
pub(crate) struct Catalog {
    context: Arc<Context>,
    manifest: Arc<Manifest>,
    keyspaces: Arc<Keyspaces>,
    wal: Arc<Wal>,
}

impl Catalog {
    /// Returns the catalog of `keyspaces`.
    pub(crate) fn new(
        context: &Arc<Context>,
        manifest: &Arc<Manifest>,
        keyspaces: &Arc<Keyspaces>,
        wal: &Arc<Wal>,
    ) -> Catalog {
        Catalog {
            context: Arc::clone(context),
            manifest: Arc::clone(manifest),
            keyspaces: Arc::clone(keyspaces),
            wal: Arc::clone(wal),
        }
    }

    /// Returns the keyspace called `name`. Makes it if it does not exist; otherwise it must agree
    /// with `options`. The result is never a group.
    ///
    /// # Errors
    /// Fails as [`Store::keyspace_with`](crate::Store::keyspace_with) does.
    pub(crate) fn keyspace(&self, name: &str, options: &KeyspaceOptions) -> Result<Named> {
        let asked = options
            .policy
            .as_ref()
            .map(|asked| self.context.options.build_policy(asked))
            .transpose()?;
        let clock = &self.context.options.clock;
        let expiry = options.expiry.map(|expiry| expiry.by(clock)).transpose()?;
        let policy = asked.map(PolicyChoice::Value);
        let options = KeyspaceOptions { policy, expiry, ..options.clone() };
        options.memtable_bytes.map_or(Ok(()), check_memtable)?;
        options.filters().check()?;
        if let (Some(group), Some(true)) = (&options.group, options.keep_numbers) {
            let message = format!(
                "a keyspace of group {group} cannot keep sequence numbers: leave out one of the two"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let operator = options.operator.as_deref().map(|name| self.operator(name)).transpose()?;
        if options.operator.is_some() && options.expiry.is_some() {
            let message = "entries of a keyspace with an operator cannot expire: leave out one";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if let Some(found) = self.keyspaces.find(name) {
            return agreed(found, name, &options);
        }
        self.context.check_writable()?;
        check_name(name)?;
        let mut keyspaces = loop {
            let needs_share = |keyspaces: &ByName| {
                let joins = |group: &String| keyspaces.contains_key(group);
                !keyspaces.is_empty() && !options.group.as_ref().is_some_and(joins)
            };
            let (shares, is_first) = {
                let keyspaces = self.keyspaces.read();
                (needs_share(&keyspaces), keyspaces.is_empty())
            };
            if shares {
                self.wal.share()?;
            } else if !is_first {
                self.wal.sync_before_record()?;
            }
            let keyspaces = self.keyspaces.write();
            if shares || !needs_share(&keyspaces) {
                break keyspaces;
            }
        };
        if let Some(found) = find(&keyspaces, name) {
            drop(keyspaces);
            return agreed(found, name, &options);
        }
        if options.expiry.is_some() {
            self.note_clock()?;
        }
        let made = match &options.group {
            None => Named::Alone(self.make_tree(&mut keyspaces, name, &options)?),
            Some(group) => self.make_member(&mut keyspaces, name, (group, operator), &options)?,
        };
        // A merging thread must visit the new keyspace once, so that it comes to rest.
        self.context.progress.notify();
        Ok(made)
    }

    /// Notes the name of the clock in the manifest, once. A fixed clock stands in for any.
    fn note_clock(&self) -> Result<()> {
        match self.context.options.clock.name() {
            Some(name) if self.manifest.clock()?.is_none() => {
                self.manifest.write(Record::Clock(name.to_string()), |_| ())
            }
            _ => Ok(()),
        }
    }

    /// Makes the keyspace `name` in `group`, which it makes too if it does not exist.
    fn make_member(
        &self,
        keyspaces: &mut ByName,
        name: &str,
        (group, operator): (&str, Option<&Arc<dyn Combine>>),
        options: &KeyspaceOptions,
    ) -> Result<Named> {
        check_name(group)?;
        let tree = match find(keyspaces, group) {
            Some(Named::Group(tree)) => {
                tree.check_options(options)?;
                tree
            }
            None if group != name => self.make_tree(keyspaces, group, options)?,
            _ => {
                let message = format!(
                    "a group called `{group}`: expected a name of its own, which \
                                       no keyspace has"
                );
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
        };
        let members = tree.members.as_ref().expect("a group has keyspaces");
        let member_id = members.next_id(group)?;
        let record = Record::Member { group: tree.id, member: member_id, name: name.into() };
        let record = record.ruled(options.operator.as_ref(), options.expiry.as_ref());
        self.manifest.write(record, |_| ())?;
        tree.rules.set(member_id, name, options.expiry, &self.context.options.filters);
        if let Some(operator) = operator {
            tree.rules.set_operator(member_id, name, operator);
        }
        members.push(name);
        let member = members.get(name).expect("it was just added");
        Ok(Named::Member(tree, member))
    }

    /// Makes the tree of a keyspace or of a group called `name`.
    fn make_tree(
        &self,
        keyspaces: &mut ByName,
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<Arc<KeyspaceShared>> {
        let id = self.manifest.next_keyspace()?;
        let memtable_bytes = options.memtable_bytes.unwrap_or(self.context.options.memtable_bytes);
        let asked = options.policy.as_ref().unwrap_or(&self.context.options.policy);
        let policy = self.context.options.build_policy(asked)?;
        let spec = policy.spec().to_string();
        let new = KeyspaceRecord { id, name: name.into(), policy: spec, memtable_bytes };
        let compression = Compression::parse(&self.context.options.compression)?;
        let record = if options.group.is_some() {
            check_group_policy(&*policy).map_err(bad_policy)?;
            Record::Group(new, compression.to_string())
        } else if options.keep_numbers == Some(true) {
            Record::NumberedKeyspace(new, compression.to_string())
        } else if compression.is_none() {
            Record::Keyspace(new)
        } else {
            Record::CompressedKeyspace(new, compression.to_string())
        };
        let record = record.filtered(options.filters());
        let record = match options.group {
            Some(_) => record,
            None => record.ruled(options.operator.as_ref(), options.expiry.as_ref()),
        };
        let known = self.manifest.write(record, |account| account.keyspaces[&id].clone())?;
        let base = KeyspaceBase { policy: Some(policy), ..KeyspaceBase::default() };
        let keyspace = open_keyspace(&self.context, id, &known, base)?;
        keyspaces.insert(name.to_string(), Arc::clone(&keyspace));
        Ok(keyspace)
    }

    /// Returns the operator called `name`.
    fn operator(&self, name: &str) -> Result<&Arc<dyn Combine>> {
        self.context.options.operators.get(name).ok_or_else(|| {
            let message = format!(
                "the combine operator `{name}` is not registered: `Builder::operator` does that"
            );
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }

    /// Compresses the tables that are written to `keyspace` from now on with `codecs`.
    pub(crate) fn set_compression(&self, keyspace: &KeyspaceShared, codecs: &str) -> Result<()> {
        self.context.check_writable()?;
        let compression = Compression::parse(codecs)?;
        let spelling = compression.to_string();
        let record = Record::Compression { keyspace: keyspace.id, compression: spelling };
        self.wal.sync_before_record()?;
        let _committing = keyspace.committing.lock();
        keyspace.state.lock().check_kept(keyspace)?;
        self.manifest.write(record, |_| ())?;
        keyspace.state.lock().compression = compression;
        Ok(())
    }

    /// Gives `keyspace` the policy `asked` from now on.
    pub(crate) fn set_policy(&self, keyspace: &KeyspaceShared, asked: &PolicyChoice) -> Result<()> {
        self.context.check_writable()?;
        let built = self.context.options.build_policy(asked)?;
        if keyspace.members.is_some() {
            check_group_policy(&*built).map_err(bad_policy)?;
        }
        let policy = Policy::new(built, self.context.options.lockstep);
        let record = Record::Policy { keyspace: keyspace.id, policy: policy.spec().to_string() };
        self.wal.sync_before_record()?;
        let committing = keyspace.committing.lock();
        keyspace.state.lock().check_kept(keyspace)?;
        self.manifest.write(record, |_| ())?;
        let mut state = keyspace.state.lock();
        state.policy = policy;
        state.at_rest = false;
        state.owed_bytes = None;
        keyspace.gate.note(&state);
        drop(state);
        drop(committing);
        self.context.progress.notify();
        Ok(())
    }
}

/// Returns `found`, which is called `name`, if it is a keyspace that agrees with `options`. Their
/// policy has its shortest spelling.
///
/// # Errors
/// Fails with `InvalidArgument`. The message names what was asked for and what is there.
fn agreed(found: Named, name: &str, options: &KeyspaceOptions) -> Result<Named> {
    let refuse = |message: String| {
        let message = format!("the keyspace `{name}` exists {message}");
        Err(Error::new(ErrorKind::InvalidArgument, message))
    };
    let tree = match (&found, &options.group) {
        (Named::Group(tree), _) => return Err(is_group(tree)),
        (Named::Alone(_), Some(asked)) => {
            return refuse(format!(
                "outside of groups, not in the group `{asked}`: only a new keyspace can join one"
            ));
        }
        (Named::Member(tree, _), Some(asked)) if tree.name.now() != *asked => {
            return refuse(format!(
                "in the group `{}`, not in the group `{asked}`: a keyspace stays in its group",
                tree.name
            ));
        }
        (Named::Alone(tree) | Named::Member(tree, _), _) => tree,
    };
    tree.check_options(options)?;
    let member_id = if let Named::Member(_, member) = &found { member.id() } else { 0 };
    let has = tree.rules.operator_name(member_id);
    match &options.operator {
        Some(asked) if has.as_ref() != Some(asked) => {
            let has = has.map_or("no combine operator".into(), |has| format!("the operator {has}"));
            refuse(format!("with {has}, not {asked}: only a new keyspace can choose one"))
        }
        _ => match (tree.rules.expiry(member_id), options.expiry) {
            (has, Some(asked)) if has != Some(asked) => {
                let has = has.map_or("without expiry".into(), |has| format!("with {has}"));
                refuse(format!("{has}, not with {asked}: only a new keyspace can choose it"))
            }
            _ => Ok(found),
        },
    }
}

/// Returns the error of a caller who took `group` for a keyspace.
pub(crate) fn is_group(group: &KeyspaceShared) -> Error {
    let members = group.members.iter().flat_map(|members| members.all());
    let names: Vec<String> = members.map(|member| format!("`{}`", member.name)).collect();
    let name = &group.name;
    let message = format!(
        "`{name}` is a group: expected the name of a keyspace, such as those of the group, {}",
        if names.is_empty() { "of which there are none yet".into() } else { names.join(", ") }
    );
    Error::new(ErrorKind::InvalidArgument, message)
}
