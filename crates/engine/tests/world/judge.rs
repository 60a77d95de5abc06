//! What must hold after an accident.

use crate::stage::{Answer, Ledger, Process, Stage};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a fresh process found in a store.
enum Found {
    /// The batches that are there as a whole.
    Batches(BTreeSet<u64>),
    /// An error, which names what is wrong.
    Error(String),
}

impl Stage {
    /// Looks at the store, and at all others, in a fresh process.
    pub(crate) fn judge(&mut self) {
        self.check_foreign();
        self.forget_numbered();
        let ledger = self.ledger.clone();
        let is_harmed = self.is_harmed;
        let after = self.judge_store(&self.data(), ledger, is_harmed);
        self.ledger = after;
        for (dir, ledger) in std::mem::take(&mut self.others) {
            // A copy of a directory that is written is no store: an error may say so.
            let is_copy = dir.ends_with("copy");
            self.judge_store(&dir, ledger, is_harmed || is_copy);
            let _begun_anew = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
        }
        self.check_foreign();
        for path in std::mem::take(&mut self.foreign).keys() {
            // The next life finds the names free.
            let _went_with_its_directory = fs::remove_file(path);
        }
        (self.may_die, self.is_harmed) = (false, false);
        (self.may_lose_unsynced, self.may_lose_end) = (false, false);
    }

    /// Checks that the store in `dir` has lost nothing, or says so. Returns what the next life may
    /// rely on.
    fn judge_store(&mut self, dir: &Path, mut ledger: Ledger, is_harmed: bool) -> Ledger {
        let needed =
            if self.may_lose_unsynced { &ledger.synced } else { &ledger.acknowledged }.clone();
        let error = match self.look_at(dir, &ledger) {
            Found::Batches(found) => {
                let missing: Vec<_> = needed.difference(&found).collect();
                if self.may_lose_end && !missing.is_empty() {
                    self.outcomes.insert("the end of the newest log is lost");
                } else if !missing.is_empty() {
                    self.fail(&format!("lost without an error: {missing:?}"));
                }
                self.check_prefix(&ledger, &found);
                return renewed(ledger, found);
            }
            Found::Error(error) => error,
        };
        if !is_harmed {
            self.fail(&format!("no file was harmed, and the store does not open: {error}"));
        }
        self.check_named(&format!("error {error}"));
        let found = self.save(dir, &mut ledger, &needed);
        renewed(ledger, found)
    }

    /// Reads the store in `dir`.
    fn look_at(&mut self, dir: &Path, ledger: &Ledger) -> Found {
        let mut child = Process::start(&self.root);
        for line in [format!("open {}", dir.display()), "verify".into(), "read".into()] {
            let answer = child.ask(&line);
            self.note(format!("a fresh process: {line} -> {}", self.short(&answer)));
            if answer.end.is_some() {
                self.fail("a fresh process died");
            }
            if let Some(error) = answer.error() {
                return Found::Error(error.to_string());
            }
            if line == "read" {
                return Found::Batches(self.batches(&answer, ledger));
            }
        }
        unreachable!("the last line is `read`")
    }

    /// Returns the batches in an answer to `read`; fails if one is none of ours, or torn.
    fn batches(&self, answer: &Answer, ledger: &Ledger) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for line in &answer.lines {
            if line.starts_with("wrong ") || line.starts_with("torn ") && !ledger.may_be_torn {
                self.fail(line);
            }
            if let Some(numbers) = line.strip_prefix("has ") {
                let numbers = numbers.split(' ').filter(|word| !word.is_empty());
                found.extend(numbers.map(|number| number.parse::<u64>().unwrap()));
            }
        }
        if let Some(foreign) = found.difference(&ledger.tried).next() {
            self.fail(&format!("batch {foreign} was never written to this store"));
        }
        found
    }

    /// Fails if a batch is missing in front of one that is there.
    fn check_prefix(&self, ledger: &Ledger, found: &BTreeSet<u64>) {
        let Some(last) = found.last() else { return };
        let before = ledger.acknowledged.range(..last);
        if let Some(missing) = before.into_iter().find(|number| !found.contains(number)) {
            self.fail(&format!("batch {missing} is missing, and {last} is there"));
        }
    }

    /// Repairs the store in `dir`, which does not open or cannot be read, and puts the new store in
    /// its place. Returns the batches in it.
    fn save(&mut self, dir: &Path, ledger: &mut Ledger, needed: &BTreeSet<u64>) -> BTreeSet<u64> {
        let to = self.root.join("repaired");
        let _none = fs::remove_dir_all(&to);
        let line = format!("repair {} {}", dir.display(), to.display());
        let answer = Process::start(&self.root).ask(&line);
        self.note(format!("repair -> {}", self.short(&answer)));
        if let Some(what) = answer.end.as_deref().or(answer.error()) {
            self.fail(&format!("there is no way out: {what}"));
        }
        self.outcomes.insert("a repair saves what is left");
        if answer.lines.iter().any(|line| line.starts_with("finding guessed")) {
            return self.begin_anew(dir, &to, &answer, ledger);
        }
        let is_exact = answer.lines.iter().any(|line| line == "exact");
        ledger.may_be_torn |= !is_exact;
        let found = match self.look_at(&to, ledger) {
            Found::Batches(found) => found,
            Found::Error(error) => self.fail(&format!("the repaired store is damaged: {error}")),
        };
        let missing: Vec<_> = needed.difference(&found).collect();
        if is_exact && !missing.is_empty() && !self.may_lose_end {
            self.fail(&format!("the repair calls itself exact and has lost {missing:?}"));
        }
        self.check_foreign();
        self.foreign.clear();
        fs::remove_dir_all(dir).unwrap();
        fs::rename(&to, dir).unwrap();
        found
    }

    /// What a repair has guessed may be anywhere. So the repaired store must live and have no
    /// damage, and the next life begins with an empty one.
    fn begin_anew(
        &mut self,
        dir: &Path,
        to: &Path,
        answer: &Answer,
        ledger: &mut Ledger,
    ) -> BTreeSet<u64> {
        if answer.lines.iter().any(|line| line == "exact") {
            self.fail("a repair that has guessed calls itself exact");
        }
        let open = format!("open {}", to.display());
        for last in ["write 8000 9 sync", "verify"] {
            let lines = [&*open, "verify", last, "close"];
            let mut child = Process::start(&self.root);
            for line in lines {
                let answer = child.ask(line);
                let has_failed = answer.lines.iter().any(|line| line.starts_with("failed "));
                if !answer.is_ok() || has_failed {
                    self.fail(&format!("the repaired store: {line} -> {answer:?}"));
                }
            }
        }
        self.check_foreign();
        self.foreign.clear();
        for dir in [dir, to] {
            fs::remove_dir_all(dir).unwrap();
        }
        ledger.may_be_torn = false;
        BTreeSet::new()
    }

    fn short(&self, answer: &Answer) -> String {
        let text = answer.lines.join(" | ");
        text.chars().take(700).collect()
    }
}

/// Returns the ledger of the next life: what is there now stays.
fn renewed(ledger: Ledger, found: BTreeSet<u64>) -> Ledger {
    Ledger { acknowledged: found.clone(), synced: found.clone(), tried: found, ..ledger }
}
