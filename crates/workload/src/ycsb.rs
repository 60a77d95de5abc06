//! `ycsb`: the core workloads of the Yahoo! Cloud Serving Benchmark.
//!
//! Follows the generators of YCSB's `CoreWorkload` (Cooper et al., "Benchmarking cloud serving
//! systems with YCSB", 2010), so that a property file means here what it means there, with
//! three differences: an operation reads and writes whole records, `deleteproportion` deletes
//! records as others read them, and YCSB's global random numbers are replaced by seeded ones.
//! `spelled.rs` has `mix`, whose shares are in the spec.

mod builtin;
mod core;
mod distribution;
mod lengths;
mod mix;
mod properties;
mod spelled;
mod stream;
mod zipfian;

use std::ops::Range;

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use self::core::Core;
use self::lengths::Values;
use self::mix::Choice;
use self::properties::Properties;
use crate::Rng;
use crate::WorkloadError;
use crate::info::{ParamUnit, WorkloadInfo, param};
use crate::inputs::{Inputs, read_all};
use crate::keys::{DecimalKeys, KeySpace};
use crate::parts::{KEYS_MAX, Parts, value_bytes};

pub(crate) use self::stream::YcsbOps;

/// Purposes of the random numbers, each with a stream of its own.
#[derive(Clone, Copy)]
enum Purpose {
    Choices,
    Keys,
    ScanLengths,
    ValueLengths,
    AbsentKeys,
}

impl Purpose {
    fn rng(self, seed: u64) -> Rng {
        Rng::new(seed, self as u64)
    }
}

/// A core workload: the load phase inserts the records, the run phase works on them.
#[derive(Clone, Debug)]
pub(crate) struct Ycsb {
    core: Core,
    /// The lengths of records, of the file or of the parameter `value`.
    values: Values,
    /// The records that lookups of absent keys draw from: none of them is ever written.
    absent: Range<u64>,
}

impl Ycsb {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "ycsb",
        summary: "a YCSB core workload: loads records, then reads, scans and writes them",
        source: "Cooper et al., SoCC 2010; YCSB's CoreWorkload",
        argument: Some("a to f for a built-in workload, or a YCSB property file"),
        params: &[
            param("records", ParamUnit::Count, "the records of the load phase; as the file says"),
            param("ops", ParamUnit::Count, "the operations of the run phase; as the file says"),
            param(
                "value",
                ParamUnit::Bytes,
                "the length of each record; 1kB unless the file says otherwise",
            ),
        ],
        example: "ycsb(a, records=5k, ops=10k, value=100B)",
    };

    pub(crate) fn build(
        params: &Params,
        seed: u64,
        inputs: &dyn Inputs,
    ) -> Result<Parts<Self>, WorkloadError> {
        let name = params.positional(0, "a property file or one of a to f, as in ycsb(a)")?;
        let records = params.count_if_given("records", 1..=KEYS_MAX)?;
        let ops = params.count_if_given("ops", ..=KEYS_MAX)?;
        let (name, text) = property_text(name, inputs)?;
        let properties = Properties::parse(&name, &text)?;
        let core = Core::from_properties(&properties, records, ops, inputs)?;
        let values = match params.has("value") {
            true => Values::Constant(value_bytes(params, 0)?),
            false => core.values.clone(),
        };

        let mut spec = Spec::bare("ycsb")
            .with("records", format_count(core.record_count))
            .with("ops", format_count(core.operation_count));
        // The spec leaves out drawn lengths, because the file has them.
        if let Values::Constant(bytes) = values {
            spec = spec.with("value", format_bytes(bytes.into()));
        }
        spec.positional.push(name);
        Ok(Self::parts(core, values, 0, spec, seed)?)
    }

    /// Returns the parts of a workload that looks for `absent_count` absent records beside its own.
    fn parts(
        core: Core,
        values: Values,
        absent_count: u64,
        spec: Spec,
        seed: u64,
    ) -> Result<Parts<Self>, SpecError> {
        let written = core.record_count + count_inserts(&core, seed);
        let items = written + absent_count;
        if items > KEYS_MAX {
            let message = format!("{spec}: {items} records are more than {KEYS_MAX}");
            return Err(SpecError::conflict(message));
        }
        let keys = KeySpace::Decimal(DecimalKeys {
            prefix: "user",
            hashed: core.hashed,
            digits_min: core.zero_padding,
        });
        let generator = Self { core, values, absent: written..items };
        Ok(Parts { generator, keys, items, spec })
    }

    pub(crate) fn load_ops(&self) -> u64 {
        self.core.inserted.end - self.core.inserted.start
    }

    pub(crate) fn run_ops(&self) -> u64 {
        self.core.operation_count
    }

    /// Returns the mean number of entries of a scan; `None` without scans.
    pub(crate) fn scan_items(&self) -> Option<f64> {
        (self.scan_share() > 0.0).then(|| self.core.scan_lengths.mean())
    }

    /// Returns the share of scans among the operations that read.
    pub(crate) fn scan_share(&self) -> f64 {
        self.core.mix.scan_share()
    }

    pub(crate) fn ops(&self, seed: u64) -> YcsbOps<'_> {
        YcsbOps::new(self, seed)
    }
}

/// Returns the canonical name of the property file and its text. A single letter names a built-in
/// one.
fn property_text(name: &str, inputs: &dyn Inputs) -> Result<(String, Vec<u8>), WorkloadError> {
    let letter = name.to_ascii_lowercase();
    if let Some(text) = builtin::text(&letter) {
        return Ok((letter, text.as_bytes().to_vec()));
    }
    Ok((name.to_owned(), read_all(inputs, name)?))
}

/// Returns how many records the run phase inserts, found by drawing its choices ahead.
fn count_inserts(core: &Core, seed: u64) -> u64 {
    if core.mix.insert_share() == 0.0 {
        return 0;
    }
    let mut rng = Purpose::Choices.rng(seed);
    let choices = (0..core.operation_count).map(|_| core.mix.draw(&mut rng));
    choices.filter(|&choice| choice == Choice::Insert).count() as u64
}
