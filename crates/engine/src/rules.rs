//! The combine operators of a tree, and the operators that a store knows.
//!
//! A keyspace names its operator in the manifest. The code of the operator comes with the options
//! of each opening. Keyspaces of a group have operators of their own, so the first byte of a key
//! chooses.

use crate::clock::{Clock, Until};
use crate::group::MEMBER_BYTES;
use lsmith_storage::combine::{Combine, CombineError, Combiner, Operator, Verdict};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::{EXPIRY_BYTES, expiring_value};
use lsmith_storage::fold::Operators;
use lsmith_storage::format::VALUE_BYTES_MAX;
use lsmith_storage::panics;
use lsmith_storage::sync::RwLock;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A combine operator that counts: values and operands are integers, and operands are added.
///
/// An integer is 8 bytes, the lowest first ([`i64::to_le_bytes`]). An absent key counts as 0. Sums
/// wrap around. Every store knows this operator, by the name `counter`.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{KeyspaceOptions, Store};
///
/// let store = Store::builder(dir.path()).open()?;
/// let options = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
/// let visits = store.keyspace_with("visits", &options)?;
/// visits.combine("/index", 2_i64.to_le_bytes())?;
/// visits.combine("/index", 1_i64.to_le_bytes())?;
/// assert_eq!(visits.get("/index")?.as_deref(), Some(&3_i64.to_le_bytes()[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

impl Counter {
    fn decode(bytes: &[u8]) -> std::result::Result<i64, CombineError> {
        let found = || format!("expected a number of 8 bytes, found {}", bytes.len());
        Ok(i64::from_le_bytes(bytes.try_into().map_err(|_| found())?))
    }
}

impl Combine for Counter {
    fn name(&self) -> &str {
        "counter"
    }

    fn combine(
        &self,
        _key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> std::result::Result<Vec<u8>, CombineError> {
        let mut sum = 0_i64;
        for bytes in value.iter().chain(operands) {
            sum = sum.wrapping_add(Counter::decode(bytes)?);
        }
        Ok(sum.to_le_bytes().to_vec())
    }

    fn check_operand(&self, _key: &[u8], operand: &[u8]) -> std::result::Result<(), CombineError> {
        Counter::decode(operand).map(drop)
    }

    fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let sum = Counter::decode(older).ok()?.wrapping_add(Counter::decode(newer).ok()?);
        Some(sum.to_le_bytes().to_vec())
    }
}

/// The combine operators that a store knows, by name. The default has [`Counter`].
#[derive(Clone)]
pub struct CombineOperators(BTreeMap<String, Arc<dyn Combine>>);

impl Default for CombineOperators {
    fn default() -> CombineOperators {
        let mut known = CombineOperators(BTreeMap::new());
        known.add(Arc::new(Counter));
        known
    }
}

impl fmt::Debug for CombineOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl CombineOperators {
    /// Adds `operator`. It replaces one of the same name.
    pub fn add(&mut self, operator: Arc<dyn Combine>) {
        self.0.insert(operator.name().to_string(), operator);
    }

    /// Returns the operator called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Combine>> {
        self.0.get(name)
    }

    /// Checks an `operand` for `key` by the operator called `name`, if that is known.
    ///
    /// # Errors
    /// `InvalidArgument` if the operator refuses the operand; `Callback` if it panics.
    pub(crate) fn check_operand(&self, name: &str, key: &[u8], operand: &[u8]) -> Result<()> {
        let Some(combine) = self.get(name) else { return Ok(()) };
        Operator::new(Arc::from(name), Arc::clone(combine), 0).check_operand(key, operand)
    }

    /// Returns the names of all operators.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the operator called `name` for the keyspace called `keyspace` of the store in `dir`.
    ///
    /// # Errors
    /// `Unsupported` if it is not known.
    pub(crate) fn of_keyspace(
        &self,
        name: &str,
        keyspace: &str,
        dir: &Path,
    ) -> Result<&Arc<dyn Combine>> {
        self.get(name).ok_or_else(|| {
            let message = format!(
                "keyspace `{keyspace}` needs the combine operator `{name}`, which is not \
                 registered"
            );
            Error::new(ErrorKind::Unsupported, message).at(dir)
        })
    }
}

/// How entries of a keyspace expire.
#[doc(alias = "ttl")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The time that every value lives which is written without a time of its own. `None` means
    /// that such values do not expire.
    pub after: Option<Life>,
}

/// How long a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A time. The clock of the store must say how long a [tick](Clock::with_tick) is. A keyspace
    /// that is made with it has it in ticks.
    Time(Duration),
    /// A number of ticks of the [clock](crate::Builder::clock).
    Ticks(u64),
}

impl From<Duration> for Life {
    fn from(time: Duration) -> Life {
        Life::Time(time)
    }
}

impl From<u64> for Life {
    fn from(ticks: u64) -> Life {
        Life::Ticks(ticks)
    }
}

impl Expiry {
    /// Returns the expiry of values that live for `life` unless they are written with a time of
    /// their own. `life` is a [`Duration`], or a number of ticks of the store's clock.
    pub fn after(life: impl Into<Life>) -> Expiry {
        Expiry { after: Some(life.into()) }
    }

    /// Returns the same in ticks of `clock`.
    ///
    /// # Errors
    /// As [`Clock::ticks`].
    pub(crate) fn by(self, clock: &Clock) -> Result<Expiry> {
        let in_ticks = |life| match life {
            Life::Time(time) => clock.ticks(time),
            Life::Ticks(ticks) => Ok(ticks),
        };
        Ok(Expiry { after: self.after.map(in_ticks).transpose()?.map(Life::Ticks) })
    }

    /// Returns the ticks that values live which are written without a time of their own. If no
    /// clock has turned the time into ticks yet, they are seconds, as the default clock has them.
    pub fn ticks(&self) -> Option<u64> {
        self.after.map(|life| match life {
            Life::Time(time) => time.as_secs(),
            Life::Ticks(ticks) => ticks,
        })
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ticks() {
            Some(after) => write!(f, "expiry after {after}"),
            None => f.write_str("expiry at times of each entry"),
        }
    }
}

/// Decides in merges which entries of a keyspace stay.
///
/// A merge shows it the newest value of a key, unless a snapshot that lives when the merge begins
/// sees that value. Snapshots that are taken while the merge runs go on reading what was there
/// before. So snapshots stay as they are. Merges that keep blocks do not show it the entries of
/// these. It is called on any thread, and for one entry as often as that is merged. It must not
/// call the store.
#[doc(alias = "compaction filter")]
pub trait MergeFilter: Send + Sync {
    /// Returns what becomes of `key`, which has `value`.
    fn verdict(&self, key: &[u8], value: &[u8]) -> Verdict;
}

impl<F: Fn(&[u8], &[u8]) -> Verdict + Send + Sync> MergeFilter for F {
    fn verdict(&self, key: &[u8], value: &[u8]) -> Verdict {
        self(key, value)
    }
}

/// The filters of keyspaces, by name.
#[derive(Clone, Default)]
pub(crate) struct Filters(pub(crate) BTreeMap<String, Arc<dyn MergeFilter>>);

impl fmt::Debug for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What a keyspace of a tree asks for, apart from its operator.
#[derive(Clone, Default)]
struct OfKeyspace {
    expiry: Option<Expiry>,
    filter: Option<Arc<dyn MergeFilter>>,
    name: String,
}

impl fmt::Debug for OfKeyspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.expiry)
    }
}

/// The rules that the keys of a tree obey: their operators, expiry and filters.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// True if the first byte of a key is the id of its keyspace.
    is_group: bool,
    clock: Clock,
    /// What the clock showed last.
    last_seen: AtomicU64,
    /// By the id of the keyspace in its group; 0 for a keyspace in none.
    keyspaces: RwLock<BTreeMap<u8, OfKeyspace>>,
    /// By the id of the keyspace in its group; 0 for a keyspace in none. With the name of each.
    operators: RwLock<BTreeMap<u8, (Arc<str>, Operator)>>,
}

impl Rules {
    /// Returns the rules of a tree without operators.
    pub(crate) fn new(is_group: bool, clock: &Clock) -> Arc<Rules> {
        Arc::new(Rules { is_group, clock: clock.clone(), ..Rules::default() })
    }

    /// Sets how entries of keyspace `member_id`, which is called `name`, expire, and its filter.
    pub(crate) fn set(&self, member_id: u8, name: &str, expiry: Option<Expiry>, filters: &Filters) {
        let filter = filters.0.get(name).cloned();
        if expiry.is_some() || filter.is_some() {
            let of_keyspace = OfKeyspace { expiry, filter, name: name.to_string() };
            self.keyspaces.write().insert(member_id, of_keyspace);
        }
    }

    /// Returns how entries of keyspace `member_id` expire; `None` if they do not.
    pub(crate) fn expiry(&self, member_id: u8) -> Option<Expiry> {
        self.keyspaces.read().get(&member_id)?.expiry
    }

    /// Returns the value of the entry that a write of `value` to `key` makes now, if all values of
    /// its keyspace expire.
    ///
    /// # Errors
    /// As [`Clock::now`].
    pub(crate) fn expiring(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let expiry = self.expiry(self.number_of(key));
        let after = expiry.and_then(|expiry| expiry.ticks());
        after.map(|after| self.value_for(after, value)).transpose()
    }

    /// Returns the value that an entry has which is written now and lives for `after`.
    ///
    /// # Errors
    /// As [`Clock::now`].
    pub(crate) fn value_for(&self, after: u64, value: &[u8]) -> Result<Vec<u8>> {
        Ok(expiring_value(self.look_at_clock()?.saturating_add(after), value))
    }

    /// Returns the value that an entry has which is written now and lives for `life`.
    ///
    /// # Errors
    /// As [`Clock::now`] and [`Clock::ticks`].
    pub(crate) fn value_with_ttl(&self, life: Duration, value: &[u8]) -> Result<Vec<u8>> {
        self.value_for(self.clock.ticks(life)?, value)
    }

    /// Returns the value that an entry has which lives until `time`.
    ///
    /// # Errors
    /// `InvalidArgument` if `time` is no time of the clock.
    pub(crate) fn value_until(&self, time: Until, value: &[u8]) -> Result<Vec<u8>> {
        Ok(expiring_value(self.clock.tick_at(time)?, value))
    }

    /// As [`Clock::micros_until`].
    pub(crate) fn micros_until(&self, time: u64) -> Option<u64> {
        self.clock.micros_until(time)
    }

    fn look_at_clock(&self) -> Result<u64> {
        let now = self.clock.now()?;
        self.last_seen.store(now, Ordering::Relaxed);
        Ok(now)
    }

    /// Returns what the clock showed when a read, a write or a merge looked at it last, without a
    /// call to it; `None` if none has, or if nothing expires.
    pub(crate) fn last_seen(&self) -> Option<u64> {
        Some(self.last_seen.load(Ordering::Relaxed)).filter(|now| *now > 0)
    }

    /// Sets the operator of keyspace `member_id` of the tree, which is called `keyspace`.
    pub(crate) fn set_operator(&self, member_id: u8, keyspace: &str, combine: &Arc<dyn Combine>) {
        let key_from = if self.is_group { MEMBER_BYTES } else { 0 };
        let operator = Operator::new(Arc::from(keyspace), Arc::clone(combine), key_from);
        self.operators.write().insert(member_id, (Arc::from(combine.name()), operator));
    }

    /// Returns the id of the keyspace of `key`.
    fn number_of(&self, key: &[u8]) -> u8 {
        if self.is_group { key.first().copied().unwrap_or_default() } else { 0 }
    }

    /// Returns the name of the operator of keyspace `member_id`.
    pub(crate) fn operator_name(&self, member_id: u8) -> Option<String> {
        self.operators.read().get(&member_id).map(|(name, _)| name.to_string())
    }

    /// Returns the operators for a merge; `None` if there are none, and nothing expires or is
    /// filtered.
    pub(crate) fn for_merges(self: &Arc<Self>) -> Option<Operators> {
        let is_ruled = self.has_operators() || !self.keyspaces.read().is_empty();
        is_ruled.then(|| Operators::for_merges(self.combiner()))
    }

    /// Returns the operators for folding memory; `None` if there are none.
    pub(crate) fn for_memory(self: &Arc<Self>) -> Option<Operators> {
        self.has_operators().then(|| Operators::for_memory(self.combiner()))
    }

    /// Checks that an `operand` may be written to `key` of the tree, in the keyspace called `name`.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has no operator, or its operator refuses the operand;
    /// `Callback` if the operator panics.
    pub(crate) fn check_operand(&self, name: &str, key: &[u8], operand: &[u8]) -> Result<()> {
        let found = self.operators.read().get(&self.number_of(key)).cloned();
        let missing = || {
            let message = format!("the keyspace `{name}` has no combine operator");
            Error::new(ErrorKind::InvalidArgument, message)
        };
        found.ok_or_else(missing)?.1.check_operand(key, operand)
    }

    fn has_operators(&self) -> bool {
        !self.operators.read().is_empty()
    }

    /// Returns the operators for reads.
    pub(crate) fn combiner(self: &Arc<Self>) -> Arc<dyn Combiner> {
        Arc::clone(self) as Arc<dyn Combiner>
    }

    fn operator_of(&self, key: &[u8]) -> Result<Operator> {
        let found = self.operators.read().get(&self.number_of(key)).cloned();
        let missing = || Error::new(ErrorKind::Callback, "the keyspace of a key has no operator");
        found.map(|(_, operator)| operator).ok_or_else(missing)
    }
}

impl Combiner for Rules {
    fn now(&self) -> Result<u64> {
        let expires = self.keyspaces.read().values().any(|keyspace| keyspace.expiry.is_some());
        if expires { self.look_at_clock() } else { Ok(0) }
    }

    fn has_filters(&self) -> bool {
        self.keyspaces.read().values().any(|keyspace| keyspace.filter.is_some())
    }

    fn verdict(&self, key: &[u8], value: &[u8]) -> Result<Verdict> {
        let found = self.keyspaces.read().get(&self.number_of(key)).cloned();
        let Some(OfKeyspace { filter: Some(filter), name, .. }) = found else {
            return Ok(Verdict::Keep);
        };
        let key = if self.is_group { &key[MEMBER_BYTES..] } else { key };
        let what = match panics::catch(|| filter.verdict(key, value)) {
            Ok(Verdict::Change(value)) if value.len() > VALUE_BYTES_MAX - EXPIRY_BYTES => {
                format!("returned a value of {} bytes", value.len())
            }
            Ok(verdict) => return Ok(verdict),
            Err(panic) => format!("panicked: {panic}"),
        };
        let message = format!("the filter of keyspace `{name}` {what}");
        Err(Error::new(ErrorKind::Callback, message))
    }

    fn combine(&self, key: &[u8], value: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        self.operator_of(key)?.combine(key, value, operands)
    }

    fn combine_operands(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Result<Option<Vec<u8>>> {
        self.operator_of(key)?.combine_operands(key, older, newer)
    }
}
