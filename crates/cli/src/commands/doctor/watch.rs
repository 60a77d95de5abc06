//! What is kept of replays while they run: progress, and trees for a page.

use crate::bars::Bars;
use lsmith_doctor::{Case, Watch};
use lsmith_lab::Progress;
use lsmith_lab::history::{History, KeyScale, Recorder};
use lsmith_sim::Event;

/// Over more flushes than this, the trees of the present settings alone are kept: each takes some
/// megabytes of a page.
const FLUSHES_MAX: u64 = 2000;

/// The histories of one column family, by the name of the policy.
pub(super) type Histories = Vec<History>;

pub(super) struct Watched {
    bars: Bars,
    keeps_trees: bool,
    family: String,
    /// True until the present settings of the column family have begun.
    is_first: bool,
    /// Of each column family that was replayed, oldest first.
    histories: Vec<(String, Histories)>,
    /// The policy under way: its name, and its trees if they are kept.
    now: Option<(String, Recorder)>,
}

/// Returns the name of a policy on a page.
pub(super) fn name_of(store: &str, policy: &str, is_present: bool) -> String {
    format!("{policy} ({store}{})", if is_present { ", now" } else { "" })
}

impl Watched {
    pub(super) fn new(case: &Case, keeps_trees: bool) -> Watched {
        let work = case.families.iter().map(|family| family.flushes().count() as u64);
        Watched {
            bars: Bars::of_parts(work.collect()),
            keeps_trees,
            family: String::new(),
            is_first: true,
            histories: Vec::new(),
            now: None,
        }
    }

    /// Returns the histories of each column family.
    pub(super) fn finish(mut self) -> Vec<(String, Histories)> {
        self.end_policy();
        self.histories
    }

    fn end_policy(&mut self) {
        let Some((name, recorder)) = self.now.take() else { return };
        if let Some((_, histories)) = self.histories.last_mut() {
            histories.push(recorder.finish(&name, "replay"));
        }
    }
}

impl Watch for Watched {
    fn begin_family(&mut self, name: &str) {
        self.end_policy();
        self.bars.begin_part();
        name.clone_into(&mut self.family);
        self.is_first = true;
        self.histories.push((name.to_owned(), Vec::new()));
    }

    fn begin(&mut self, store: &str, policy: &str, flushes: u64, keys: u64) {
        self.end_policy();
        let name = name_of(store, policy, self.is_first);
        self.bars.begin(&format!("{}: {name}", self.family), flushes);
        let is_kept = self.keeps_trees && (self.is_first || flushes <= FLUSHES_MAX);
        self.is_first = false;
        if is_kept {
            self.now = Some((name, Recorder::new(Some(KeyScale::Numbers(keys)))));
        }
    }

    fn advance(&mut self, done: u64) {
        self.bars.advance(done);
    }

    fn observe(&mut self, event: Event<'_>) {
        if let Some((_, recorder)) = &mut self.now {
            recorder.observe(event);
        }
    }
}
