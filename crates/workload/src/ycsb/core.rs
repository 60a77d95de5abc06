//! The properties of YCSB's `CoreWorkload`.

use std::ops::Range;

use super::distribution::{Requests, ScanLengths};
use super::lengths::Values;
use super::mix::{Choice, Mix};
use super::properties::Properties;
use super::zipfian::{THETA, Zipfian};
use crate::WorkloadError;
use crate::inputs::Inputs;
use crate::parts::KEYS_MAX;

/// A core workload with the defaults of YCSB where the file is silent.
#[derive(Clone, Debug)]
pub(super) struct Core {
    /// Records that exist when the run phase starts; its inserts get ids from here on.
    pub(super) record_count: u64,
    /// Operations of the run phase.
    pub(super) operation_count: u64,
    /// The records that the load phase inserts, part of `0..record_count`.
    pub(super) inserted: Range<u64>,
    /// True if key order is scattered.
    pub(super) hashed: bool,
    /// Fewest digits of the number in a key.
    pub(super) zero_padding: u32,
    pub(super) values: Values,
    pub(super) mix: Mix,
    pub(super) requests: Requests,
    pub(super) scan_lengths: ScanLengths,
}

/// The class names under which YCSB knows its core workload.
const CORE_CLASSES: [&str; 2] =
    ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];

/// The properties that are played.
const PLAYED: [&str; 27] = [
    "workload",
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "insertorder",
    "zeropadding",
    "fieldcount",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "deleteproportion",
    "requestdistribution",
    "zipfianconstant",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "exponential.percentile",
    "exponential.frac",
    "scanlengthdistribution",
    "minscanlength",
    "maxscanlength",
];

/// The properties that say how YCSB runs and reports, names within a database, and those about
/// single fields: here an operation reads and writes whole records.
const WITHOUT_EFFECT: [&str; 20] = [
    "table",
    "fieldnameprefix",
    "readallfields",
    "readallfieldsbyname",
    "writeallfields",
    "dataintegrity",
    "core_workload_insertion_retry_limit",
    "core_workload_insertion_retry_interval",
    "db",
    "exporter",
    "exportfile",
    "threadcount",
    "target",
    "maxexecutiontime",
    "dotransactions",
    "status",
    "label",
    "measurementtype",
    "reportlatencyforeacherror",
    "latencytrackederrors",
];

impl Core {
    /// Reads the properties; `records` and `ops` stand in for the counts of the file.
    pub(super) fn from_properties(
        file: &Properties,
        records: Option<u64>,
        ops: Option<u64>,
        inputs: &dyn Inputs,
    ) -> Result<Self, WorkloadError> {
        file.check_names(&[&PLAYED[..], &WITHOUT_EFFECT].concat())?;
        file.choice("workload", CORE_CLASSES[0], &CORE_CLASSES)?;
        let record_count = match (records, file.count("recordcount", 1..=KEYS_MAX)?) {
            (Some(records), _) | (None, Some(records)) => records,
            (None, None) => return Err(file.refuse_all("needs recordcount, or records=")),
        };
        let operation_count = match (ops, file.count("operationcount", 0..=KEYS_MAX)?) {
            (Some(ops), _) | (None, Some(ops)) => ops,
            (None, None) => return Err(file.refuse_all("needs operationcount, or ops=")),
        };
        let mix = read_mix(file)?;
        let added_max = (operation_count as f64 * mix.insert_share() * 2.0) as u64;
        Ok(Self {
            record_count,
            operation_count,
            inserted: read_inserted(file, record_count)?,
            hashed: file.choice("insertorder", "hashed", &["hashed", "ordered"])? == "hashed",
            zero_padding: narrow(file.count("zeropadding", 0..=100)?.unwrap_or(1)),
            values: Values::read(file, inputs)?,
            mix,
            requests: read_requests(file, record_count, added_max)?,
            scan_lengths: read_scan_lengths(file)?,
        })
    }
}

fn read_mix(file: &Properties) -> Result<Mix, WorkloadError> {
    // The order in which YCSB adds them to its chooser.
    let weights = [
        (file.share("readproportion", 0.95)?, Choice::Read),
        (file.share("updateproportion", 0.05)?, Choice::Update),
        (file.share("insertproportion", 0.0)?, Choice::Insert),
        (file.share("scanproportion", 0.0)?, Choice::Scan),
        (file.share("readmodifywriteproportion", 0.0)?, Choice::ReadModifyWrite),
        // Not of YCSB's own, but of many that were made from it.
        (file.share("deleteproportion", 0.0)?, Choice::Delete),
    ];
    Mix::new(&weights).ok_or_else(|| file.refuse_all("all operation proportions are 0"))
}

fn read_inserted(file: &Properties, record_count: u64) -> Result<Range<u64>, WorkloadError> {
    let start = file.count("insertstart", 0..=KEYS_MAX)?.unwrap_or(0);
    let count = file.count("insertcount", 1..=KEYS_MAX)?;
    let end = start + count.unwrap_or(record_count.saturating_sub(start));
    if start >= end || end > record_count {
        return Err(file.refuse_all(format!(
            "records {start}..{end} by insertstart and insertcount are not within the \
             {record_count} records"
        )));
    }
    Ok(start..end)
}

fn read_requests(
    file: &Properties,
    record_count: u64,
    added_max: u64,
) -> Result<Requests, WorkloadError> {
    let known = ["uniform", "zipfian", "latest", "sequential", "hotspot", "exponential"];
    // Gray's approximation holds below 1.
    let theta = file.real("zipfianconstant", THETA, 0.01..=0.999)?;
    Ok(match file.choice("requestdistribution", "uniform", &known)? {
        "uniform" => Requests::Uniform,
        "zipfian" => Requests::Zipfian { added_max, theta },
        "latest" => Requests::Latest { theta },
        "sequential" => Requests::Sequential,
        "exponential" => {
            let percent = file.real("exponential.percentile", 95.0, 0.01..=99.99)?;
            let share = file.real("exponential.frac", 0.857_142_857_1, 1e-9..=1.0)?;
            let age = record_count as f64 * share;
            Requests::Exponential { gamma: -(1.0 - percent / 100.0).ln() / age }
        }
        _ => Requests::Hotspot {
            hot_records: file.share("hotspotdatafraction", 0.2)?,
            hot_operations: file.share("hotspotopnfraction", 0.8)?,
        },
    })
}

fn read_scan_lengths(file: &Properties) -> Result<ScanLengths, WorkloadError> {
    let longest = file.count("maxscanlength", 1..=KEYS_MAX - 1)?.unwrap_or(1000);
    let shortest = file.count("minscanlength", 1..=longest)?.unwrap_or(1);
    Ok(match file.choice("scanlengthdistribution", "uniform", &["uniform", "zipfian"])? {
        "uniform" => ScanLengths::Uniform(narrow(shortest)..narrow(longest + 1)),
        _ => ScanLengths::Zipfian(narrow(shortest), Zipfian::new(longest - shortest + 1, THETA)),
    })
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).expect("the range of the property ends at 32 bits")
}
