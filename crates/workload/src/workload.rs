//! A workload: from its spelling to its operations.

mod in_group;

use std::collections::VecDeque;

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::churn::{Churn, ChurnOps};
use crate::group::Group;
use crate::info::WorkloadInfo;
use crate::inputs::Inputs;
use crate::keys::Keys;
use crate::load::{Load, LoadOps};
use crate::normal::{Normal, NormalOps};
use crate::parts::{KEY_BYTES_MAX, Parts};
use crate::queue::{Queue, QueueOps};
use crate::tpc::{Tpc, TpcOps};
use crate::trace::{Recorded, Trace, TraceOps};
use crate::uniform::{Uniform, UniformOps};
use crate::update::{Update, UpdateOps};
use crate::ycsb::{Ycsb, YcsbOps};
use crate::{Lives, Op, Ranks, WorkloadError, fill_value, value_seed};

/// A seeded stream of operations, its keys, and its spelling. See the crate's page for all kinds.
#[derive(Clone, Debug)]
pub struct Workload {
    spec: Spec,
    generator: Generator,
    keys: Keys,
    items: u64,
    seed: u64,
    limit_bytes: Option<u64>,
    limit_flushes: Option<u64>,
    /// The share of each value that compresses to nothing.
    compressible: f64,
    lives: Lives,
    /// The keyspaces that are written together, if there are several.
    group: Option<Group>,
}

/// The word for lives that the file of a trace says.
const RECORDED: &str = "recorded";

/// The source of the operations; each kind of workload has its own file.
#[derive(Clone, Debug)]
enum Generator {
    Load(Load),
    Ycsb(Box<Ycsb>),
    Update(Update),
    Churn(Churn),
    Queue(Queue),
    Uniform(Uniform),
    Normal(Normal),
    Tpc(Tpc),
    Trace(Box<Trace>),
}

impl Generator {
    /// Builds what `spec` names. With `wants_lives`, a trace tells how long entries live.
    fn build(
        spec: &Spec,
        params: &Params<'_>,
        seed: u64,
        inputs: &dyn Inputs,
        wants_lives: bool,
    ) -> Result<Parts<Generator>, WorkloadError> {
        Ok(match spec.name.as_str() {
            "load" => Load::build(params)?.map(Generator::Load),
            "ycsb" => {
                Ycsb::build(params, seed, inputs)?.map(|ycsb| Generator::Ycsb(Box::new(ycsb)))
            }
            "mix" => Ycsb::build_mix(params, seed)?.map(|ycsb| Generator::Ycsb(Box::new(ycsb))),
            "update" => Update::build(params, seed)?.map(Generator::Update),
            "churn" => Churn::build(params)?.map(Generator::Churn),
            "queue" => Queue::build(params)?.map(Generator::Queue),
            "uniform" => Uniform::build(params)?.map(Generator::Uniform),
            "normal" => Normal::build(params)?.map(Generator::Normal),
            "tpc" => Tpc::build(params)?.map(Generator::Tpc),
            _ => Trace::build(params, seed, inputs, wants_lives)?
                .map(|trace| Generator::Trace(Box::new(trace))),
        })
    }
}

impl Workload {
    /// All kinds of workloads.
    pub const INFOS: &[WorkloadInfo] = &[
        Load::INFO,
        Ycsb::INFO,
        Ycsb::MIX,
        Update::INFO,
        Churn::INFO,
        Queue::INFO,
        Uniform::INFO,
        Normal::INFO,
        Tpc::INFO,
        Trace::INFO,
    ];

    /// The format of the file of a `trace`: a sample, an empty line, and the rules.
    pub const TRACE_FORMAT: &str = Trace::FORMAT;

    /// Builds the workload that `spec` names. Reads its files through `inputs`.
    ///
    /// A damaged trace is no error here: the stream returns the operations before the damage.
    ///
    /// # Errors
    ///
    /// Fails if the name or a parameter is unknown or out of range, a file cannot be read, or a
    /// file has the wrong format.
    pub fn from_spec(spec: &Spec, inputs: &dyn Inputs) -> Result<Self, WorkloadError> {
        let unknown = || {
            let names: Vec<&str> = Self::INFOS.iter().map(|info| info.name).collect();
            SpecError::unknown("workload", &spec.name, &names)
        };
        let info = Self::INFOS.iter().find(|info| info.name == spec.name).ok_or_else(unknown)?;
        let params = info.params(spec)?;
        let limit_bytes = params.bytes_if_given("bytes", 1..)?;
        let limit_flushes = params.count_if_given("flushes", 1..)?;
        let key_bytes = params.bytes("key_bytes", 0, 0..=KEY_BYTES_MAX)?;
        let compressible = params.real("compressible", 0.0, 0.0..=1.0)?;
        let is_recorded = params.text("expire") == Some(RECORDED);
        let expire_after = if is_recorded { None } else { params.count_if_given("expire", 1..)? };
        let seed = params.count("seed", 1, ..)?;
        let parts = Generator::build(spec, &params, seed, inputs, is_recorded)?;
        let Parts { generator, keys, items, mut spec } = parts;
        let ends_with_zero =
            || SpecError::conflict("key_bytes needs keys that do not end with a zero byte");
        let keys = Keys::new(keys, key_bytes as usize).ok_or_else(ends_with_zero)?;
        if let Some(bytes) = limit_bytes {
            spec = spec.with("bytes", format_bytes(bytes));
        }
        if let Some(flushes) = limit_flushes {
            spec = spec.with("flushes", format_count(flushes));
        }
        if key_bytes > 0 {
            spec = spec.with("key_bytes", format_bytes(key_bytes));
        }
        if compressible > 0.0 {
            spec = spec.with("compressible", compressible);
        }
        if let Some(writes) = expire_after {
            spec = spec.with("expire", format_count(writes));
        }
        let lives = match (&generator, expire_after) {
            (Generator::Trace(trace), None) if is_recorded => {
                spec = spec.with("expire", RECORDED);
                Lives::Each(trace.lives())
            }
            _ if is_recorded => {
                return Err(SpecError::conflict("expire=recorded needs a trace").into());
            }
            (_, Some(writes)) => Lives::All(writes),
            (_, None) => Lives::Stay,
        };
        spec = spec.with("seed", format_count(seed));
        let group = None;
        let workload = Self {
            spec,
            generator,
            keys,
            items,
            seed,
            limit_bytes,
            limit_flushes,
            compressible,
            lives,
            group,
        };
        if workload.combines() && workload.lives.expire() {
            return Err(SpecError::conflict("expire needs a trace without combines").into());
        }
        Ok(workload)
    }

    /// Returns the canonical spelling, with defaults filled in: all that decides the operations,
    /// given the same input files.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the operations from the first one on; every call starts the same stream again.
    #[must_use]
    pub fn ops(&self) -> Ops<'_> {
        let stream = match &self.generator {
            Generator::Load(load) => Stream::Load(load.ops(self.seed)),
            Generator::Ycsb(ycsb) => Stream::Ycsb(ycsb.ops(self.seed)),
            Generator::Update(update) => Stream::Update(update.ops(self.seed)),
            Generator::Churn(churn) => Stream::Churn(churn.ops(self.seed)),
            Generator::Queue(queue) => Stream::Queue(queue.ops()),
            Generator::Uniform(uniform) => Stream::Uniform(uniform.ops(self.seed)),
            Generator::Normal(normal) => Stream::Normal(normal.ops(self.seed)),
            Generator::Tpc(tpc) => Stream::Tpc(tpc.ops(self.seed)),
            Generator::Trace(trace) => Stream::Trace(trace.ops()),
        };
        let (group, waiting) = (self.group.as_ref(), VecDeque::new());
        let (bytes_left, lives) = (self.limit_bytes, &self.lives);
        Ops { stream, keys: &self.keys, group, waiting, bytes_left, lives, writes: 0 }
    }

    /// Returns how many operations [`Workload::ops`] gives, if no limit on bytes and no damaged
    /// line ends it earlier.
    #[must_use]
    pub fn ops_max(&self) -> u64 {
        if let Some(group) = &self.group {
            return group.ops_max;
        }
        match &self.generator {
            Generator::Load(load) => load.ops_max(),
            Generator::Ycsb(ycsb) => ycsb.load_ops() + ycsb.run_ops(),
            Generator::Update(update) => update.ops_max(),
            Generator::Churn(churn) => churn.ops_max(),
            Generator::Queue(queue) => queue.ops_max(),
            Generator::Uniform(uniform) => uniform.steady().ops_max(),
            Generator::Normal(normal) => normal.steady().ops_max(),
            Generator::Tpc(tpc) => tpc.steady().ops_max(),
            Generator::Trace(trace) => trace.ops_max(),
        }
    }

    /// Returns how many of the first operations are the load phase, which prepares the store for
    /// the run phase. Only `ycsb`, `mix`, `uniform`, `normal`, `tpc` and recordings have one; what
    /// other workloads do first is measured like the rest.
    #[must_use]
    pub fn load_ops(&self) -> u64 {
        if let Some(group) = &self.group {
            return group.load_ops;
        }
        match &self.generator {
            Generator::Ycsb(ycsb) => ycsb.load_ops(),
            Generator::Uniform(uniform) => uniform.steady().load_ops(),
            Generator::Normal(normal) => normal.steady().load_ops(),
            Generator::Tpc(tpc) => tpc.steady().load_ops(),
            Generator::Trace(trace) => trace.load_ops(),
            Generator::Load(_)
            | Generator::Update(_)
            | Generator::Churn(_)
            | Generator::Queue(_) => 0,
        }
    }

    /// Returns the mean number of entries that the scans of the workload read, as its spelling
    /// says; `None` if it has no scans.
    #[must_use]
    pub fn scan_items(&self) -> Option<f64> {
        match &self.generator {
            Generator::Ycsb(ycsb) => ycsb.scan_items(),
            Generator::Trace(trace) => trace.scan_items(),
            _ => None,
        }
    }

    /// Returns what the store said of itself, if the workload is a recording of one.
    #[must_use]
    pub fn recorded(&self) -> Option<&Recorded> {
        match &self.generator {
            Generator::Trace(trace) => trace.recorded(),
            _ => None,
        }
    }

    /// Returns true if the workload has combines, for which a store needs an operator.
    #[must_use]
    pub fn combines(&self) -> bool {
        match &self.generator {
            Generator::Trace(trace) => trace.combines(),
            _ => false,
        }
    }

    /// Returns true if the workload has range deletes. Its items are then in key order.
    #[must_use]
    pub fn deletes_ranges(&self) -> bool {
        match &self.generator {
            Generator::Churn(churn) => churn.deletes_ranges(),
            Generator::Queue(_) => true,
            Generator::Trace(trace) => trace.deletes_ranges(),
            _ => false,
        }
    }

    /// Returns after how many writes entries expire.
    #[must_use]
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// Returns the share of scans among the operations that read, as the spelling says.
    #[must_use]
    pub fn scan_share(&self) -> f64 {
        match &self.generator {
            Generator::Ycsb(ycsb) => ycsb.scan_share(),
            Generator::Trace(trace) => trace.scan_share(),
            _ => 0.0,
        }
    }

    /// Upper bound of the items that occur: all are below it, and it is at most 2^32 - 1. For
    /// `uniform`, `normal` and `tpc` it is the size of the key space; they may use little of it.
    #[must_use]
    pub fn items(&self) -> u64 {
        let keyspaces = self.group.as_ref().map_or(1, Group::count);
        self.items * keyspaces
    }

    /// Writes the key of `item`, which must be below [`Workload::items`], over what `key` holds.
    pub fn key(&self, item: u64, key: &mut Vec<u8>) {
        match &self.group {
            None => self.keys.write(item, key),
            Some(group) => {
                let (keyspace, item) = group.split(item);
                self.keys.write(item, key);
                key.insert(0, keyspace);
            }
        }
    }

    /// Length of the key of `item`, in bytes.
    #[must_use]
    pub fn key_bytes(&self, item: u64) -> usize {
        match &self.group {
            None => self.keys.key_bytes(item),
            Some(group) => group.key_bytes(item, &self.keys),
        }
    }

    /// Returns true if items are numbered in the byte order of their keys. Ranks then take no
    /// memory.
    #[must_use]
    pub fn items_are_ranks(&self) -> bool {
        self.keys.in_order(self.items)
    }

    /// Returns the place of each item's key in byte order. Computed anew by each call: seconds for
    /// ten million hashed keys.
    #[must_use]
    pub fn ranks(&self) -> Ranks {
        let ranks = self.keys.ranks(self.items);
        match &self.group {
            None => ranks,
            Some(group) => group.ranks(ranks),
        }
    }

    /// Writes version number `version` of the value of `item` over `value`, whose length stays. The
    /// first bytes are random and do not compress. The rest, the share `compressible`, is zeros.
    pub fn value(&self, item: u64, version: u64, value: &mut [u8]) {
        let zeros = (value.len() as f64 * self.compressible) as usize;
        let (random, zeros) = value.split_at_mut(value.len() - zeros);
        fill_value(value_seed(self.seed, item, version), random);
        zeros.fill(0);
    }

    /// Returns the seed, also of the values: see [`value`](Workload::value).
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// After how many flushes a driver should stop. Only a driver sees flushes, so the stream
    /// itself does not end there.
    #[must_use]
    pub fn limit_flushes(&self) -> Option<u64> {
        self.limit_flushes
    }

    /// Returns the same workload with [`limit_flushes`](Workload::limit_flushes) set to `flushes`.
    #[must_use]
    pub fn limited_to(&self, flushes: u64) -> Workload {
        let mut limited = self.clone();
        limited.limit_flushes = Some(flushes);
        let params = &mut limited.spec.params;
        params.retain(|(name, _)| name != "flushes");
        // In front of the common parameters behind it, as `from_spec` spells it.
        let common = || WorkloadInfo::COMMON.iter().map(|param| param.name);
        let is_behind =
            |name: &str| common().skip_while(|known| *known != "flushes").any(|n| n == name);
        let at = params.iter().position(|(name, _)| is_behind(name)).unwrap_or(params.len());
        params.insert(at, ("flushes".to_owned(), format_count(flushes)));
        limited
    }
}

/// The operations of a workload in order; see [`Workload::ops`].
///
/// After an error there is nothing more.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    stream: Stream<'a>,
    keys: &'a Keys,
    group: Option<&'a Group>,
    /// In a group, the operations on other keyspaces that follow from the last one of the stream.
    waiting: VecDeque<Op>,
    /// User bytes to write before the end, if limited.
    bytes_left: Option<u64>,
    lives: &'a Lives,
    /// The number of writes so far, if entries expire.
    writes: u64,
}

#[derive(Clone, Debug)]
enum Stream<'a> {
    Load(LoadOps),
    Ycsb(YcsbOps<'a>),
    Update(UpdateOps),
    Churn(ChurnOps),
    Queue(QueueOps),
    Uniform(UniformOps),
    Normal(NormalOps),
    Tpc(TpcOps),
    Trace(TraceOps<'a>),
}

impl Iterator for Ops<'_> {
    type Item = Result<Op, WorkloadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes_left == Some(0) {
            return None;
        }
        let mut op = match self.waiting.pop_front() {
            Some(op) => op,
            None => match self.next_of_stream()? {
                Ok(op) => op,
                Err(error) => return Some(Err(error)),
            },
        };
        if self.lives.expire() && (op.writes_value() || op.deletes()) {
            self.writes += 1;
            let life = self.lives.after(self.writes).filter(|_| op.writes_value());
            op.life = life.unwrap_or_default();
        }
        if let Some(left) = &mut self.bytes_left {
            let key_bytes = match self.group {
                None => self.keys.key_bytes(op.item),
                Some(group) => group.key_bytes(op.item, self.keys),
            };
            *left = left.saturating_sub(op.user_bytes(key_bytes));
        }
        Some(Ok(op))
    }
}

impl Ops<'_> {
    /// Returns the next operation of the stream or, of a group, the first that it leads to.
    #[inline]
    fn next_of_stream(&mut self) -> Option<Result<Op, WorkloadError>> {
        loop {
            let op = match &mut self.stream {
                Stream::Load(ops) => ops.next()?,
                Stream::Ycsb(ops) => ops.next()?,
                Stream::Update(ops) => ops.next()?,
                Stream::Churn(ops) => ops.next()?,
                Stream::Queue(ops) => ops.next()?,
                Stream::Uniform(ops) => ops.next()?,
                Stream::Normal(ops) => ops.next()?,
                Stream::Tpc(ops) => ops.next()?,
                Stream::Trace(ops) => match ops.next()? {
                    Ok(op) => op,
                    Err(error) => return Some(Err(error)),
                },
            };
            let Some(group) = self.group else { return Some(Ok(op)) };
            self.waiting.extend(group.spread(op));
            // No keyspace may have the item.
            if let Some(first) = self.waiting.pop_front() {
                return Some(Ok(first));
            }
        }
    }
}
