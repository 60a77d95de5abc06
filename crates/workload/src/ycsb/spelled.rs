//! `mix`: a core workload whose shares of operations are in the spec.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use super::Ycsb;
use super::core::Core;
use super::distribution::{Requests, ScanLengths};
use super::lengths::Values;
use super::mix::{Choice, Mix};
use super::zipfian::THETA;
use crate::info::{ParamUnit, VALUE, WorkloadInfo, param};
use crate::parts::{KEYS_MAX, Parts, value_bytes};

/// The parameters that are shares of operations, in the order in which the next one is chosen.
const SHARES: [(&str, Choice); 6] = [
    ("get", Choice::Read),
    ("get_absent", Choice::ReadAbsent),
    ("scan", Choice::Scan),
    ("put", Choice::Update),
    ("insert", Choice::Insert),
    ("delete", Choice::Delete),
];

/// The shares of a spec without any.
const DEFAULT_SHARES: [f64; SHARES.len()] = [0.5, 0.0, 0.0, 0.5, 0.0, 0.0];

/// How far the sum of the shares may be from 1: further than rounding carries it.
const ROUNDING: f64 = 1e-9;

/// The length of scans, unless given.
const SCAN_LENGTH: u64 = 50;

impl Ycsb {
    pub(crate) const MIX: WorkloadInfo = WorkloadInfo {
        name: "mix",
        summary: "loads keys, then reads, scans and writes them in given shares, which add up to 1",
        source: "",
        argument: None,
        params: &[
            param(
                "get",
                ParamUnit::Number,
                "the share of operations that look up a key that was written; 0 if left out, 0.5 \
                 if all shares are",
            ),
            param(
                "get_absent",
                ParamUnit::Number,
                "the share that look up one of `keys` other keys, which are never written; 0 if \
                 left out",
            ),
            param("scan", ParamUnit::Number, "the share that scan; 0 if left out"),
            param(
                "put",
                ParamUnit::Number,
                "the share that write a key again; 0 if left out, 0.5 if all shares are",
            ),
            param("insert", ParamUnit::Number, "the share that write a new key; 0 if left out"),
            param(
                "delete",
                ParamUnit::Number,
                "the share that delete a key, present or not; 0 if left out",
            ),
            param("keys", ParamUnit::Count, "the keys of the load phase, 1 to 2^32 - 1").or("1M"),
            param(
                "ops",
                ParamUnit::Count,
                "the operations of the run phase; as many as keys if left out",
            ),
            param(
                "dist",
                ParamUnit::Word,
                "which keys are read, scanned from, written again and deleted: any (`uniform`), \
                 mostly some scattered ones (`zipf`), or mostly the newest (`latest`)",
            )
            .or("uniform"),
            param(
                "skew",
                ParamUnit::Number,
                "the Zipf skew of `zipf` and `latest`, 0.01 to 0.999; 0.99 if left out",
            ),
            param(
                "scan_length",
                ParamUnit::Count,
                "the number of entries of each scan; 50 if left out",
            ),
            VALUE,
        ],
        example: "mix(get=0.5, get_absent=0.1, scan=0.1, put=0.3, keys=5k, ops=10k, value=100B)",
    };

    /// Builds a `mix`.
    pub(crate) fn build_mix(params: &Params, seed: u64) -> Result<Parts<Self>, SpecError> {
        let shares = read_shares(params)?;
        let keys = params.count("keys", 1_000_000, 1..=KEYS_MAX)?;
        let ops = params.count("ops", keys, ..=KEYS_MAX)?;
        let dist = params.choice("dist", "uniform", &["uniform", "zipf", "latest"])?;
        // Gray's approximation holds below 1.
        let theta = params.real("skew", THETA, 0.01..=0.999)?;
        let scan_length = params.count("scan_length", SCAN_LENGTH, 1..KEYS_MAX)?;
        let value_bytes = value_bytes(params, 1000)?;

        let mut spec = Spec::bare("mix");
        for ((name, _), share) in SHARES.iter().zip(shares).filter(|(_, share)| *share > 0.0) {
            spec = spec.with(*name, share);
        }
        spec =
            spec.with("keys", format_count(keys)).with("ops", format_count(ops)).with("dist", dist);
        if dist != "uniform" {
            spec = spec.with("skew", theta);
        }
        let chosen: Vec<(f64, Choice)> =
            SHARES.iter().zip(shares).map(|((_, choice), share)| (share, *choice)).collect();
        let has = |wanted| chosen.iter().any(|(share, choice)| *share > 0.0 && *choice == wanted);
        if has(Choice::Scan) {
            spec = spec.with("scan_length", format_count(scan_length));
        }
        spec = spec.with("value", format_bytes(value_bytes.into()));

        let mix = Mix::new(&chosen).expect("the shares add up to 1");
        let added_max = (ops as f64 * mix.insert_share() * 2.0) as u64;
        let absent_count = if has(Choice::ReadAbsent) { keys } else { 0 };
        let scan_length = u32::try_from(scan_length).expect("the range ends at 32 bits");
        let values = Values::Constant(value_bytes);
        let core = Core {
            record_count: keys,
            operation_count: ops,
            inserted: 0..keys,
            hashed: true,
            zero_padding: 1,
            values: values.clone(),
            mix,
            requests: match dist {
                "uniform" => Requests::Uniform,
                "zipf" => Requests::Zipfian { added_max, theta },
                _ => Requests::Latest { theta },
            },
            scan_lengths: ScanLengths::Uniform(scan_length..scan_length + 1),
        };
        Self::parts(core, values, absent_count, spec, seed)
    }
}

/// Returns the shares in the order of [`SHARES`].
fn read_shares(params: &Params) -> Result<[f64; SHARES.len()], SpecError> {
    if !SHARES.iter().any(|(name, _)| params.has(name)) {
        return Ok(DEFAULT_SHARES);
    }
    let mut shares = [0.0; SHARES.len()];
    for ((name, _), share) in SHARES.iter().zip(&mut shares) {
        *share = params.real(name, 0.0, 0.0..=1.0)?;
    }
    let sum: f64 = shares.iter().sum();
    if (sum - 1.0).abs() <= ROUNDING {
        return Ok(shares);
    }
    let given = SHARES.iter().zip(shares).filter(|(_, share)| *share > 0.0);
    let given: Vec<String> = given.map(|((name, _), share)| format!("{name}={share}")).collect();
    let given = if given.is_empty() { "none is above 0".to_owned() } else { given.join(", ") };
    // Without the noise of adding.
    let rounded = |number: f64| (number * 1e6).round() / 1e6;
    let way_out = if sum < 1.0 { "add" } else { "take off" };
    let message = format!(
        "the shares of `mix` add up to {}, not to 1 ({given}): {way_out} {}",
        rounded(sum),
        rounded((sum - 1.0).abs()),
    );
    Err(SpecError::conflict(message))
}
