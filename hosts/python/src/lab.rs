//! The lab: simulations, comparisons, advice and formulas. All results are JSON.

use crate::error::{bad_argument, raised};
use crate::policy::Chosen;
use anyhow::Context;
use lsmith_lab::tune::{Limits, Tuning};
use lsmith_lab::{
    Comparison, Content, FileInputs, FileSizes, ModelSettings, NoProgress, Options, Scratch,
    keyed_fits, machine_of, simulate_observed, simulate_time,
};
use lsmith_policy::{ParamInfo, PolicyInfo, Registry, laws};
use lsmith_sim::KeyedWorkload;
use lsmith_spec::{Spec, parse_bytes};
use lsmith_workload::{Inputs, Workload};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn workload_of(spec: &str) -> PyResult<Workload> {
    let spec: Spec = spec.parse().map_err(bad_argument)?;
    Workload::from_spec(&spec, &FileInputs).map_err(bad_argument)
}

fn bytes_of(text: &str) -> PyResult<u64> {
    parse_bytes(text).map_err(bad_argument)
}

/// Simulates a policy key by key, on a machine also in time.
#[pyfunction]
#[pyo3(signature = (policy, workload, memtable, machine=None, threads=2))]
pub(crate) fn simulate(
    py: Python<'_>,
    policy: &Bound<'_, PyAny>,
    workload: &str,
    memtable: &str,
    machine: Option<&str>,
    threads: usize,
) -> PyResult<String> {
    let chosen = Chosen::of(policy)?;
    let workload = workload_of(workload)?;
    let options = Options { memtable_bytes: bytes_of(memtable)?, threads, ..Options::default() };
    let spec = machine.map(str::parse::<Spec>).transpose().map_err(bad_argument)?;
    let machine = spec.map(|spec| machine_of(&spec)).transpose().map_err(bad_argument)?;
    let done = py.detach(|| {
        keyed_fits(&workload, options.memtable_bytes)?;
        let keyed = KeyedWorkload::new(workload);
        let files = FileSizes::measured(keyed.workload(), &options)?;
        let content = Content::Keyed(&keyed);
        let bytes = options.memtable_bytes;
        let policy = &chosen.policy;
        let simulated = simulate_observed(policy, &content, bytes, files.as_ref(), &mut |_| {})?;
        let mut value = serde_json::to_value(simulated)?;
        if let Some(machine) = &machine {
            let time = simulate_time(policy, &keyed, machine, &options)?;
            value["time"] = serde_json::to_value(time)?;
        }
        anyhow::Ok(value)
    });
    chosen.check()?;
    done.map(|value| value.to_string()).map_err(|error| raised(&error))
}

/// Runs policies on the real store, beside what simulations and formulas predict.
#[pyfunction]
#[pyo3(signature = (policies, workload, memtable, free=false, threads=2))]
pub(crate) fn compare(
    py: Python<'_>,
    policies: Vec<Bound<'_, PyAny>>,
    workload: &str,
    memtable: &str,
    free: bool,
    threads: usize,
) -> PyResult<String> {
    let chosen = policies.iter().map(Chosen::of).collect::<PyResult<Vec<_>>>()?;
    let workload = workload_of(workload)?;
    let options = Options { memtable_bytes: bytes_of(memtable)?, threads, ..Options::default() };
    let done = py.detach(|| {
        keyed_fits(&workload, options.memtable_bytes)?;
        let policies: Vec<_> = chosen.iter().map(|chosen| chosen.policy.clone()).collect();
        let workload = KeyedWorkload::new(workload);
        let dir = Scratch::new("lsmith-python-")?;
        let comparison = Comparison {
            policies: &policies,
            workload: &workload,
            dir: dir.path(),
            options: &options,
            free,
            runs: 1,
        };
        let mut rows = Vec::new();
        comparison.run(&NoProgress, &mut |row| rows.push(row))?;
        Ok(serde_json::to_string(&rows)?)
    });
    chosen.iter().try_for_each(Chosen::check)?;
    done.map_err(|error: anyhow::Error| raised(&error))
}

/// Finds the best policy for a workload, within limits.
#[pyfunction]
#[pyo3(signature = (
    workload, memtable, read_cost_max=None, scan_cost_max=None, space_cost_max=None,
    longest_merge=None
))]
pub(crate) fn tune(
    py: Python<'_>,
    workload: &str,
    memtable: &str,
    read_cost_max: Option<f64>,
    scan_cost_max: Option<f64>,
    space_cost_max: Option<f64>,
    longest_merge: Option<&str>,
) -> PyResult<String> {
    let workload = workload_of(workload)?;
    let memtable_bytes = bytes_of(memtable)?;
    let limits = Limits {
        read_cost_max,
        scan_cost_max,
        space_cost_max,
        merge_bytes_max: longest_merge.map(bytes_of).transpose()?,
        memtable_bytes,
        ..Limits::default()
    };
    let tuned = py.detach(|| {
        let registry = &Registry::builtin();
        let tuning =
            Tuning { registry, workload: &workload, limits: &limits, progress: &NoProgress };
        Ok(serde_json::to_string(&tuning.run()?)?)
    });
    tuned.map_err(|error: anyhow::Error| raised(&error))
}

/// Filter bits per key, as in the store's tables.
const FILTER_BITS: f64 = 10.0;

/// The number of entries of a range read.
const SCAN_ITEMS: u64 = 50;

/// Computes the costs of a policy by formula.
#[pyfunction]
#[pyo3(signature = (policy, keys, zipf, item, memtable, requests))]
pub(crate) fn model(
    policy: &str,
    keys: u64,
    zipf: f64,
    item: &str,
    memtable: &str,
    requests: u64,
) -> PyResult<String> {
    let settings = ModelSettings {
        keys,
        zipf,
        item_bytes: bytes_of(item)?,
        memtable_bytes: bytes_of(memtable)?,
        requests,
        filter_bits: FILTER_BITS,
        scan_items: SCAN_ITEMS,
        is_sequential: false,
    };
    let modelled = lsmith_lab::model(policy, &settings).map_err(bad_argument)?;
    serde_json::to_string(&modelled).map_err(bad_argument)
}

/// Says what the compactions of a RocksDB cost, from the files of its directory or from one LOG.
#[pyfunction]
pub(crate) fn doctor(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let found = py.detach(|| {
        let case = lsmith_doctor::Case::read(files(&path)?)?;
        Ok(serde_json::to_string(&lsmith_doctor::Diagnosis::of(&case))?)
    });
    found.map_err(|error: anyhow::Error| raised(&error.context(path.display().to_string())))
}

/// The names of files that are read begin so.
const READ: [&str; 4] = ["LOG", "MANIFEST-", "OPTIONS-", "CURRENT"];

fn files(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut paths = vec![path.to_path_buf()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        paths = entries.iter().map(std::fs::DirEntry::path).collect();
        paths.retain(|path| READ.iter().any(|start| name_of(path).starts_with(start)));
    }
    let read = |path: &PathBuf| {
        let text = path.to_str().context("the path is not UTF-8")?;
        let mut bytes = Vec::new();
        FileInputs.open(text).map_err(anyhow::Error::msg)?.read_to_end(&mut bytes)?;
        let name = name_of(path);
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        anyhow::Ok((name.to_owned(), bytes))
    };
    paths.iter().map(read).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Lists all policies with their parameters.
#[pyfunction]
pub(crate) fn policies() -> String {
    let registry = Registry::builtin();
    let of = |param: &ParamInfo| {
        let ParamInfo { name, default, meaning } = param;
        json!({ "name": name, "default": default, "meaning": meaning })
    };
    let params = |info: &PolicyInfo| info.params.iter().map(of).collect::<Value>();
    let all = registry.infos().iter().map(|info| {
        let (name, source, summary) = (info.name, info.source, info.summary);
        json!({ "name": name, "source": source, "summary": summary, "params": params(info) })
    });
    all.collect::<Value>().to_string()
}

/// Checks a policy against the laws that every policy must keep. Returns the law that it breaks
/// and the reason, as text, or None.
#[pyfunction]
pub(crate) fn check_laws(py: Python<'_>, policy: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let chosen = Chosen::of(policy)?;
    let checked = py.detach(|| laws::check(&*chosen.policy));
    chosen.check()?;
    Ok(checked.err().map(|error| error.to_string()))
}
