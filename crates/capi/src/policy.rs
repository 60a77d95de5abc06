//! Merge policies: a tree goes in, a plan comes out; and policies that are written in C.

use crate::bytes::{bytes, copy_out, text};
use crate::error::lsmith_error_kind_t::LSMITH_PANICKED;
use crate::error::{Done, call, given, invalid, lsmith_error_t, quietly, words_of};
use lsmith::policy::{
    Eager, MergePolicy, Needs, Registry, Shape, Spec, Stack, StackRun, check_group_policy, laws,
};
use lsmith::tree::{Input, KeyRange, Level, MergePlan, Mode, Place, Reason, RunId, TreeView};
use std::ffi::{c_char, c_void};
use std::fmt::{self, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::{ptr, slice};

/// A merge policy (compaction strategy).
#[derive(Debug)]
pub struct lsmith_policy_t(pub(crate) Arc<dyn MergePolicy>);

/// A policy that is written in C. Any thread may call it, several at once. It must be pure: the
/// same view gets the same plan. It is called under locks of the store: it must not call the store,
/// and no exception may leave it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lsmith_policy_callbacks_t {
    /// Given to each call.
    pub state: *mut c_void,
    /// Writes a plan for the tree in the text `view` to `plan`, which has room for `capacity`
    /// bytes. Returns the length of the plan, 0 if no merge is due. If the plan is longer than
    /// `capacity`, it is asked again with more room.
    pub next_merge: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            view: *const c_char,
            viewlen: usize,
            plan: *mut c_char,
            capacity: usize,
        ) -> usize,
    >,
    /// Called once, when the policy is used no more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

/// A sorted run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lsmith_run_t {
    /// Logical bytes: of each entry its key, its value and 8.
    pub bytes: u64,
    /// The level that the run is in. Older runs are in no lower one.
    pub level: u32,
    /// True if a merge that is under way takes the run.
    pub busy: bool,
}

/// A policy that is written in C and merges neighbouring whole runs. For its callbacks holds what
/// holds for `lsmith_policy_callbacks_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lsmith_pick_callbacks_t {
    /// Given to each call.
    pub state: *mut c_void,
    /// Looks at `count` runs, newest first, of a tree that had `flushes` flushes. To merge the runs
    /// from index `from` up to, not including, index `end`, sets both and returns true. Returns
    /// false if no merge is due.
    pub pick: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            runs: *const lsmith_run_t,
            count: usize,
            flushes: u64,
            from: *mut usize,
            end: *mut usize,
        ) -> bool,
    >,
    /// Called once, when the policy is used no more. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
}

/// Returns the policy that `spec` describes, such as `tiered(ratio=4)`. Returns null on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_policy_create(
    spec: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_policy_t>> {
    call(error, None, || {
        // SAFETY: as the caller promises.
        let policy = Registry::builtin().build(unsafe { text(spec, "a spec") }?)?;
        Ok(Some(Box::new(lsmith_policy_t(policy))))
    })
}

/// Returns a policy that asks `callbacks`. Its spec is `name`. It has at most `runs_max` runs at
/// rest; 0 stands for no bound. Returns null on error, and does not call `destroy` then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_policy_create_from(
    name: *const c_char,
    runs_max: u64,
    callbacks: Option<&lsmith_policy_callbacks_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_policy_t>> {
    call(error, None, || {
        let callbacks = *given(callbacks, "struct of callbacks")?;
        given(callbacks.next_merge, "callback `next_merge`")?;
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "a name") }?;
        Called::policy(name, runs_max, Asked::Plan(callbacks))
    })
}

/// Returns a policy that asks `callbacks`, as `lsmith_policy_create_from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_policy_create_from_pick(
    name: *const c_char,
    runs_max: u64,
    callbacks: Option<&lsmith_pick_callbacks_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_policy_t>> {
    call(error, None, || {
        let callbacks = *given(callbacks, "struct of callbacks")?;
        given(callbacks.pick, "callback `pick`")?;
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "a name") }?;
        Called::policy(name, runs_max, Asked::Pick(callbacks))
    })
}

/// Destroys the handle. Keyspaces that use the policy go on using it.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_policy_destroy(policy: Option<Box<lsmith_policy_t>>) {
    quietly((), || drop(policy));
}

/// Returns the spec of a policy. The caller frees the text.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_policy_spec(
    policy: Option<&lsmith_policy_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        copy_out(given(policy, "policy")?.0.spec().to_string().as_bytes())
    })
}

/// Returns the plan that a policy makes for the tree in the text `view`, or null if no merge is
/// due, and on error. The caller frees the text. `lsmith_view` shows what views look like.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_policy_next_merge(
    policy: Option<&lsmith_policy_t>,
    view: *const c_char,
    viewlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        let policy = given(policy, "policy")?;
        // SAFETY: as the caller promises.
        let view = str::from_utf8(unsafe { bytes(view, viewlen) }?);
        let view = view.map_err(|_| invalid("expected a view in UTF-8, found other bytes"))?;
        let bad = |error| invalid(format!("expected the text of a view: {error}"));
        let plan = ask(policy, &view.parse::<TreeView>().map_err(bad)?)?;
        plan.map_or(Ok(ptr::null_mut()), |plan| copy_out(plan.to_string().as_bytes()))
    })
}

/// Asks a policy about `count` runs of a store that is not lsmith's, newest first. Its memtables
/// have `memtable_bytes`, and it made `flushes` flushes so far. If a merge is due, sets the three
/// places and returns true: the runs from index `from` up to, not including, `end` become one run
/// of `level`. Returns false if none is due or one of these runs is busy, and on error: also if the
/// policy asks for something else, as policies that merge parts of runs do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_policy_pick(
    policy: Option<&lsmith_policy_t>,
    runs: *const lsmith_run_t,
    count: usize,
    memtable_bytes: u64,
    flushes: u64,
    from: Option<&mut usize>,
    end: Option<&mut usize>,
    level: Option<&mut u32>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        let policy = given(policy, "policy")?;
        let runs = match count {
            0 => &[],
            _ if runs.is_null() => {
                return Err(invalid(format!("expected {count} runs, found null")));
            }
            // SAFETY: as the caller promises.
            _ => unsafe { slice::from_raw_parts(runs, count) },
        };
        let Some(plan) = ask(policy, &view_of(runs, memtable_bytes, flushes)?)? else {
            return Ok(false);
        };
        let (range, output) = neighbours(&plan, runs).ok_or_else(|| {
            let spec = policy.0.spec();
            invalid(format!("expected `{spec}` to merge neighbouring whole runs, found `{plan}`"))
        })?;
        let is_free = runs[range.clone()].iter().all(|run| !run.busy);
        *given(from, "place for `from`")? = range.start;
        *given(end, "place for `end`")? = range.end;
        *given(level, "place for `level`")? = output;
        Ok(is_free)
    })
}

/// Returns the plan of `policy`, or the error of one that panics: policies in C do so on nonsense.
fn ask(policy: &lsmith_policy_t, view: &TreeView) -> Done<Option<MergePlan>> {
    let plan = catch_unwind(AssertUnwindSafe(|| policy.0.next_merge(view)));
    plan.map_err(|panic| lsmith_error_t::new(LSMITH_PANICKED, words_of(&*panic)))
}

/// Returns the view of a tree with these runs, newest first. The run at `index` is called
/// `runs.len() - index`.
fn view_of(runs: &[lsmith_run_t], memtable_bytes: u64, flushes: u64) -> Done<TreeView> {
    let mut text = format!("view memtable {memtable_bytes}B\ntree flushes {flushes}");
    let mut before = None;
    for (index, lsmith_run_t { bytes, level, .. }) in runs.iter().enumerate() {
        if before.is_some_and(|before| before > *level) {
            return Err(invalid(format!("run {index} is older and in a lower level, {level}")));
        }
        // Writing to a string cannot fail.
        if before != Some(*level) {
            let _ = write!(text, "\nL{level}");
        }
        before = Some(*level);
        let id = runs.len() - index;
        let _ = write!(text, " r{id}[t{id}:.. {bytes}B]");
    }
    text.parse().map_err(|error| invalid(format!("runs that no tree can have: {error}")))
}

/// Returns the indexes of the runs of a plan that makes one run of neighbours, and its level.
fn neighbours(plan: &MergePlan, runs: &[lsmith_run_t]) -> Option<(Range<usize>, u32)> {
    let index = |id: RunId| runs.len().checked_sub(usize::try_from(id.0).ok()?);
    let whole = |input: &Input| index(input.run).filter(|_| input.range == KeyRange::ALL);
    let inputs = plan.inputs.iter().map(whole).collect::<Option<Vec<usize>>>()?;
    let (from, last) = (*inputs.first()?, *inputs.last()?);
    let level = match plan.place {
        Place::Oldest => runs.get(last)?.level,
        Place::NewRun(level) => u32::try_from(level).ok()?,
        Place::Into(run) if index(run) == Some(last) => runs.get(last)?.level,
        _ => return None,
    };
    let are_neighbours = inputs.iter().copied().eq(from..=last);
    (plan.mode == Mode::Merge && are_neighbours).then_some((from..last + 1, level))
}

/// Returns true if a policy decides about the runs of a store that is not lsmith's, as
/// `lsmith_policy_pick` asks. Such a store has no key ranges, tombstones or reads to show, and it
/// merges neighbouring whole runs. The error says what else the policy needs.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_policy_check_pick(
    policy: Option<&lsmith_policy_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        let policy = &*given(policy, "policy")?.0;
        let Needs { blocks, windows, sequence_numbers, exact_sizes: _, .. } = policy.needs();
        let Needs { appends, drops, reads, tombstone_ages, .. } = policy.needs();
        let takes_keys = windows || check_group_policy(policy).is_err();
        let needs = [
            (blocks, "counts data blocks"),
            (appends, "appends to tables"),
            (drops, "drops runs unread"),
            (takes_keys, "merges key ranges"),
            (sequence_numbers, "reads sequence numbers"),
            (reads, "reads how often the tree is read"),
            (tombstone_ages, "reads the age of deletes"),
        ];
        let Some((_, what)) = needs.into_iter().find(|(is_needed, _)| *is_needed) else {
            return Ok(true);
        };
        let spec = policy.spec();
        Err(invalid(format!(
            "this store merges whole runs by size, age and level: expected a policy such as \
             auto, minlatency or tiered, found `{spec}`, which {what}"
        )))
    })
}

/// Tries a policy on many trees. Returns true if it keeps all laws of policies. The error says
/// which law it broke on which tree.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_policy_check(
    policy: Option<&lsmith_policy_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        let policy = given(policy, "policy")?;
        laws::check(&*policy.0).map_err(|broken| invalid(broken.to_string()))?;
        Ok(true)
    })
}

/// What is asked.
enum Asked {
    Plan(lsmith_policy_callbacks_t),
    Pick(lsmith_pick_callbacks_t),
}

/// A policy whose decisions callbacks make.
struct Called {
    name: String,
    shape: Shape,
    asked: Asked,
}

// SAFETY: the caller promises that any thread may call, several at once.
unsafe impl Send for Called {}
// SAFETY: as above.
unsafe impl Sync for Called {}

impl fmt::Debug for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Called").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The characters of a wrong plan that an error shows.
const PLAN_CHARS_SHOWN: usize = 60;

/// The room for a plan in the first call.
const PLAN_BYTES: usize = 1024;

impl Called {
    fn policy(name: &str, runs_max: u64, asked: Asked) -> Done<Option<Box<lsmith_policy_t>>> {
        let is_bare = name.parse::<Spec>().is_ok_and(|spec| spec == Spec::bare(name));
        if !is_bare || Registry::builtin().infos().iter().any(|info| info.name == name) {
            return Err(invalid(format!(
                "expected a name of small letters, digits and `_` that no policy has, found \
                 `{name}`"
            )));
        }
        let shape = match runs_max {
            0 => Shape::Unmerged,
            _ => Shape::Stack { runs_max },
        };
        let called = Called { name: name.to_string(), shape, asked };
        Ok(Some(Box::new(lsmith_policy_t(Arc::new(called)))))
    }

    fn plan(&self, view: &TreeView) -> Done<Option<MergePlan>> {
        match &self.asked {
            Asked::Plan(callbacks) => told(callbacks, &view.to_string()),
            Asked::Pick(callbacks) => picked(callbacks, view),
        }
    }
}

/// Returns the plan that a callback writes for `view`.
fn told(callbacks: &lsmith_policy_callbacks_t, view: &str) -> Done<Option<MergePlan>> {
    let next_merge = given(callbacks.next_merge, "callback `next_merge`")?;
    let mut plan: Vec<u8> = vec![0; PLAN_BYTES];
    let ask = |plan: &mut Vec<u8>| {
        let (place, room) = (plan.as_mut_ptr().cast(), plan.len());
        // SAFETY: the view is readable, and the plan has room for as many bytes.
        unsafe { next_merge(callbacks.state, view.as_ptr().cast(), view.len(), place, room) }
    };
    let mut len = ask(&mut plan);
    if len > plan.len() {
        plan.resize(len, 0);
        len = ask(&mut plan);
    }
    let Some(plan) = plan.get(..len) else {
        return Err(invalid(format!("a plan grew to {len} bytes between two equal calls")));
    };
    if plan.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(plan);
    text.parse().map(Some).map_err(|error| {
        let shown: String = text.chars().take(PLAN_CHARS_SHOWN).collect();
        invalid(format!("expected a plan, found `{shown}`: {error}"))
    })
}

/// Returns the plan for the runs that a callback picks.
fn picked(callbacks: &lsmith_pick_callbacks_t, view: &TreeView) -> Done<Option<MergePlan>> {
    let pick = given(callbacks.pick, "callback `pick`")?;
    let stack = Stack::of(view);
    let levels = view.tree.levels();
    let has = |level: &Level, id| level.runs().iter().any(|run| run.id() == id);
    let run = |run: &StackRun| {
        // What is still in memory comes to level 0.
        let level = levels.iter().position(|level| has(level, run.id)).unwrap_or_default();
        lsmith_run_t { bytes: run.bytes, level: level as u32, busy: run.busy }
    };
    let runs: Vec<lsmith_run_t> = stack.runs().iter().map(run).collect();
    let (mut from, mut end) = (0, 0);
    // SAFETY: the runs are readable, and both places can be written.
    let is_due = unsafe {
        pick(callbacks.state, runs.as_ptr(), runs.len(), stack.flushes(), &mut from, &mut end)
    };
    if !is_due {
        return Ok(None);
    }
    if end > runs.len() || from >= end || end - from < 2 {
        let count = runs.len();
        return Err(invalid(format!(
            "expected at least two of {count} runs to merge, found runs {from} to {end}"
        )));
    }
    let reason = Reason::new("picks {} runs from run {} on", [(end - from) as u64, from as u64, 0]);
    Ok(stack.merge(from, end, Eager::Auto, reason))
}

impl Drop for Called {
    fn drop(&mut self) {
        let (destroy, state) = match &self.asked {
            Asked::Plan(callbacks) => (callbacks.destroy, callbacks.state),
            Asked::Pick(callbacks) => (callbacks.destroy, callbacks.state),
        };
        if let Some(destroy) = destroy {
            // SAFETY: nobody else has the state any more.
            unsafe { destroy(state) }
        }
    }
}

impl MergePolicy for Called {
    fn spec(&self) -> Spec {
        Spec::bare(self.name.clone())
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.plan(view).unwrap_or_else(|error| {
            // A policy cannot say otherwise that it failed. The store catches it, says so to
            // writers, and tries again when asked. Nothing is printed.
            resume_unwind(Box::new(format!("policy `{}`: {error}", self.name)))
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }
}
