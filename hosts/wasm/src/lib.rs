//! lsmith in a browser: a page of simulations, each checked on a store in memory.
//!
//! * [`page`]: simulates policies under a workload, and returns the page of `lsmith simulate` for
//!   all of them.
//! * The functions whose names begin with `lsmith_` are what JavaScript calls. Texts are UTF-8. A
//!   caller asks [`lsmith_request`] for room, writes a request there, calls [`lsmith_page`], and
//!   reads the answer at [`lsmith_answer`].
//!
//! There are no threads, so stores merge in lockstep. The clock stands still.

use anyhow::{Context, ensure};
use lsmith::env::MemEnv;
use lsmith_lab::history::Recorder;
use lsmith_lab::page::{Group, Page};
use lsmith_lab::{Content, Least, NoProgress, Options, Simulated, run, sealing, simulate_observed};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::KeyedWorkload;
use lsmith_spec::{Spec, format_bytes, parse_bytes};
use lsmith_workload::{FlushSizes, NoInputs, Workload};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most operations of a workload: more take a browser minutes.
pub const OPS_MAX: u64 = 5_000_000;

/// What to simulate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Specs of policies, separated by `;`.
    pub policies: String,
    /// The spec of a workload without files.
    pub workload: String,
    /// Logical bytes at which a memtable is sealed, such as `64KiB`.
    pub memtable: String,
}

/// What JavaScript gets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// A page as the text of an HTML file.
    Page(String),
    /// Why there is none.
    Error(String),
}

/// Returns the page of the policies of `request`, as the text of an HTML file.
///
/// Each policy is simulated, and then merges on a store in memory that takes the same operations.
/// The page says whether both wrote the same.
///
/// # Errors
/// Fails if the request names something unknown, or asks for more than [`OPS_MAX`] operations.
pub fn page(request: &Request) -> anyhow::Result<String> {
    let specs = Spec::parse_list(&request.policies)?;
    let workload = Workload::from_spec(&request.workload.parse()?, &NoInputs)?;
    let ops = workload.ops_max();
    ensure!(ops <= OPS_MAX, "the workload has {ops} operations: a page takes {OPS_MAX} at most");
    let memtable_bytes = parse_bytes(&request.memtable)?;
    let keyed = KeyedWorkload::new(workload);
    let content = Content::Keyed(&keyed);
    let sizes = Arc::new(FlushSizes::default());
    let least = Least::of(&content, &sizes, memtable_bytes)?;
    let (mut simulations, mut notes) = (Vec::new(), Vec::new());
    for spec in &specs {
        let policy = sealing(Registry::builtin().build(&spec.to_string())?, &sizes);
        let mut recorder = Recorder::new(content.key_scale());
        let mut observe = |event: lsmith_sim::Event<'_>| recorder.observe(event);
        let mut simulated =
            simulate_observed(&policy, &content, memtable_bytes, None, &mut observe)?;
        simulated.optimum = least.optimum(&simulated);
        let checked = checked(&policy, keyed.workload(), &simulated);
        notes.push(checked.with_context(|| format!("policy {spec}, on a store"))?);
        simulations.push((simulated, recorder));
    }
    let points = simulations.first().map_or_else(Vec::new, |(first, _)| least.points(first));
    let mut group = Group::of_simulations(simulations, &points)?;
    group.notes.extend(notes);
    let facts =
        [("policies", request.policies.clone()), ("memtable", format_bytes(memtable_bytes))];
    let facts = facts.map(|(name, value)| (name.to_owned(), value)).into();
    Page { title: "lsmith simulate".to_owned(), facts, groups: vec![group] }.html()
}

/// Plays the workload on a store in memory, and says how its merges compare with the simulation.
fn checked(
    policy: &Arc<dyn MergePolicy>,
    workload: &Workload,
    simulated: &Simulated,
) -> anyhow::Result<String> {
    let memtable_bytes = simulated.memtable_bytes;
    let options = Options { env: Arc::new(MemEnv::new()), memtable_bytes, ..Options::default() };
    let store = run(Arc::clone(policy), workload, Path::new("/store"), &options, &NoProgress)?;
    let (found, said) = (&store.costs, &simulated.report.costs);
    let both = [found, said].map(|costs| (costs.merges, costs.write_cost_system));
    let policy = &simulated.policy;
    Ok(if both[0] == both[1] {
        format!("A store in memory made the {} merges of {policy} too.", found.merges)
    } else {
        format!(
            "A store in memory made {} merges of {policy} and wrote {:.4} bytes per byte; the \
             simulation made {} and wrote {:.4}.",
            found.merges, found.write_cost_system, said.merges, said.write_cost_system
        )
    })
}

/// The texts that go between JavaScript and this module.
#[derive(Debug)]
struct Texts {
    request: Vec<u8>,
    answer: Vec<u8>,
}

static TEXTS: Mutex<Texts> = Mutex::new(Texts { request: Vec::new(), answer: Vec::new() });

fn texts() -> MutexGuard<'static, Texts> {
    TEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns room for a request of so many bytes. It is valid until the next call of this function.
#[allow(unsafe_code, reason = "JavaScript finds the function by its name, which no other has")]
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_request(bytes: usize) -> *mut u8 {
    let mut texts = texts();
    texts.request = vec![0; bytes];
    texts.request.as_mut_ptr()
}

/// Answers the request: a [`Request`] as JSON. Returns the bytes of the answer. The answer is JSON,
/// an object with one field: `page` has the page, or `error` says why there is none.
#[allow(unsafe_code, reason = "JavaScript finds the function by its name, which no other has")]
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_page() -> usize {
    let mut texts = texts();
    let request = serde_json::from_slice(&texts.request).context("the request is no JSON");
    let answer = match request.and_then(|request| page(&request)) {
        Ok(page) => Answer::Page(page),
        Err(error) => Answer::Error(format!("{error:#}")),
    };
    texts.answer = serde_json::to_vec(&answer).unwrap_or_default();
    texts.answer.len()
}

/// Returns the answer to the last request. It is valid until the next call of [`lsmith_page`].
#[allow(unsafe_code, reason = "JavaScript finds the function by its name, which no other has")]
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_answer() -> *const u8 {
    texts().answer.as_ptr()
}
