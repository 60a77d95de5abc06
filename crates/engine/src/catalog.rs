//! Makes keyspaces, and changes their policy and their compression.

use crate::compression::Compression;
use crate::context::Context;
use crate::keyspace::{KeyspaceShared, Policy, open_keyspace};
use crate::keyspaces::Keyspaces;
use crate::manifest::{KeyspaceRecord, Manifest, Record};
use crate::options::{KeyspaceOptions, bad_policy, check_memtable, check_name};
use crate::wal::Wal;
use lsmith_storage::error::Result;
use std::sync::Arc;

/// Makes keyspaces, and changes their policy and their compression.
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
    /// with `options`.
    ///
    /// # Errors
    /// Fails as [`Store::keyspace_with`](crate::Store::keyspace_with) does.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        options: &KeyspaceOptions,
    ) -> Result<Arc<KeyspaceShared>> {
        let build = |spec: &str| self.context.options.registry.build(spec).map_err(bad_policy);
        let asked = options.policy.as_deref().map(build).transpose()?;
        let policy = asked.map(|policy| policy.spec().to_string());
        options.memtable_bytes.map_or(Ok(()), check_memtable)?;
        if let Some(keyspace) = self.keyspaces.get(name) {
            return keyspace.check_options(policy, options.memtable_bytes).map(|()| keyspace);
        }
        self.context.check_writable()?;
        check_name(name)?;
        let mut keyspaces = loop {
            let shares = !self.keyspaces.read().is_empty();
            if shares {
                self.wal.share()?;
            }
            let keyspaces = self.keyspaces.write();
            if shares || keyspaces.is_empty() {
                break keyspaces;
            }
        };
        if let Some(keyspace) = keyspaces.get(name).map(Arc::clone) {
            drop(keyspaces);
            return keyspace.check_options(policy, options.memtable_bytes).map(|()| keyspace);
        }
        let id = keyspaces.values().map(|keyspace| keyspace.id + 1).max().unwrap_or(0);
        let memtable_bytes = options.memtable_bytes.unwrap_or(self.context.options.memtable_bytes);
        let new_policy = match policy {
            Some(policy) => policy,
            None => build(&self.context.options.policy)?.spec().to_string(),
        };
        let new = KeyspaceRecord { id, name: name.into(), policy: new_policy, memtable_bytes };
        let compression = Compression::parse(&self.context.options.compression)?;
        let record = if compression.is_none() {
            Record::Keyspace(new)
        } else {
            Record::CompressedKeyspace(new, compression.to_string())
        };
        let known = self.manifest.write(record, |account| account.keyspaces[&id].clone())?;
        let keyspace = open_keyspace(&self.context, id, &known)?;
        keyspaces.insert(name.to_string(), Arc::clone(&keyspace));
        // A merging thread must visit the new keyspace once, so that it comes to rest.
        self.context.progress.notify();
        Ok(keyspace)
    }

    /// Compresses the tables that are written to `keyspace` from now on with `codecs`.
    pub(crate) fn set_compression(&self, keyspace: &KeyspaceShared, codecs: &str) -> Result<()> {
        self.context.check_writable()?;
        let compression = Compression::parse(codecs)?;
        let spelling = compression.to_string();
        let record = Record::Compression { keyspace: keyspace.id, compression: spelling };
        let _committing = keyspace.committing.lock();
        self.manifest.write(record, |_| ())?;
        keyspace.state.lock().compression = compression;
        Ok(())
    }

    /// Gives `keyspace` the policy `spec` from now on.
    pub(crate) fn set_policy(&self, keyspace: &KeyspaceShared, spec: &str) -> Result<()> {
        self.context.check_writable()?;
        let built = self.context.options.registry.build(spec).map_err(bad_policy)?;
        let policy = Policy::new(built, self.context.options.lockstep);
        let record = Record::Policy { keyspace: keyspace.id, policy: policy.spec().to_string() };
        let committing = keyspace.committing.lock();
        self.manifest.write(record, |_| ())?;
        let mut state = keyspace.state.lock();
        state.policy = policy;
        state.at_rest = false;
        keyspace.gate.note(&state);
        drop(state);
        drop(committing);
        self.context.progress.notify();
        Ok(())
    }
}
