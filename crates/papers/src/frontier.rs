//! Which policies another policy beats in everything that is paid.

use crate::form::*;
use anyhow::Context;
use lsmith_lab::tune::fine_grid;
use lsmith_lab::{Content, FileInputs, FileSizes, Options, simulate_observed};
use lsmith_policy::Registry;
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;

/// What is written: the panel, its title and the workload. Each fills about 100 memtables.
const LOADS: [(&str, &str, &str); 5] = [
    ("new", "new keys", "load(keys=200k, value=100B)"),
    ("order", "keys in order", "load(keys=200k, value=100B, order=sequential)"),
    ("uniform", "puts to even keys", "mix(put=1, keys=40k, ops=200k, value=100B)"),
    ("zipf", "puts to Zipf keys", "mix(put=1, keys=40k, ops=200k, dist=zipf, value=100B)"),
    ("queue", "a queue", "queue(keys=200k, keep=20k, purge=2k, value=100B)"),
];
const MEMTABLE_BYTES: u64 = 256 << 10;

/// A quick measurement has one setting of twelve.
const QUICK: usize = 12;

/// Costs that differ by less than this share are alike.
const ALIKE: f64 = 0.01;

/// What is paid, less being better: bytes written per byte of keys and values, runs in the mean,
/// bytes held per live byte in the mean, and bytes of the largest output of a merge.
const PAID: [&str; 4] = ["writes", "runs", "space", "longest merge"];

/// The first three of [`PAID`] are means.
const MEANS: usize = 3;

/// A policy with its parameters, and what it pays under each load.
struct Known {
    /// The name of its curve: of a policy of the caller, its spec.
    name: String,
    spec: String,
    paid: Vec<[f64; PAID.len()]>,
}

/// A policy that another one beats, and what it pays over the other.
struct Beaten<'a> {
    own: &'a Known,
    by: &'a Known,
    more: [f64; PAID.len()],
}

impl Known {
    /// Returns true if the policy pays no more than `other` in each of the first `costs`, and less
    /// in one.
    fn beats(&self, other: &Known, load: usize, costs: usize) -> bool {
        let pairs = || self.paid[load].into_iter().zip(other.paid[load]).take(costs);
        pairs().all(|(own, other)| own <= other * (1.0 + ALIKE))
            && pairs().any(|(own, other)| own < other * (1.0 - ALIKE))
    }

    /// Returns the policy of another name among `all` that beats this one by the most, if any does.
    /// What counts is the product of all that this one pays over the other.
    fn beaten_by<'a>(&'a self, all: &'a [Known], load: usize, costs: usize) -> Option<Beaten<'a>> {
        let others = all.iter().filter(|other| other.name != self.name);
        let beaters = others.filter(|other| other.beats(self, load, costs));
        let more = |by: &Known| std::array::from_fn(|at| self.paid[load][at] / by.paid[load][at]);
        let beaten = beaters.map(|by| Beaten { own: self, by, more: more(by) });
        beaten.max_by(|one, other| one.gain(costs).total_cmp(&other.gain(costs)))
    }
}

impl Beaten<'_> {
    /// Returns the product of what is paid more, in the first `costs`.
    fn gain(&self, costs: usize) -> f64 {
        self.more[..costs].iter().product()
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let runs = || Axis::log("runs that a lookup considers, mean", "");
    let writes = || Axis::log("bytes written per byte of keys and values", "");
    let panels = LOADS.map(|(name, title, _)| Panel::new(name, title, runs(), writes()));
    let mut figure = task.figure(panels);
    let (all, others) = known(task)?;
    let others = &all[..others];
    let mut names: Vec<&str> = Vec::new();
    for known in &all {
        if !names.contains(&known.name.as_str()) {
            names.push(&known.name);
        }
    }
    for (load, (panel, ..)) in LOADS.iter().enumerate() {
        for name in &names {
            let own = all.iter().filter(|known| known.name == **name);
            let best = own.filter(|known| known.beaten_by(others, load, MEANS).is_none());
            figure.draw(panel, name, best.map(|it| (it.paid[load][1], it.paid[load][0])));
        }
    }
    figure.note(format!(
        "Keyed simulation of {} settings of {} policies, with the bytes of files. A setting is \
         beaten if a setting of another policy is no worse in bytes written, runs and space, and \
         better in one; {:.0} % are alike. A curve has the settings that nothing beats.",
        all.len(),
        names.len(),
        ALIKE * 100.0
    ));
    for name in names {
        figure.note(verdict(name, &all, others));
    }
    Ok(figure)
}

/// Simulates all policies under all loads. Also returns how many of them can beat others:
/// policies of the caller come last, and are only compared with them.
fn known(task: &Task<'_>) -> anyhow::Result<(Vec<Known>, usize)> {
    let registry = Registry::builtin();
    let grid = fine_grid(&registry).into_iter().enumerate();
    let kept = grid.filter(|(at, _)| at % task.pick(QUICK, 1) == 0);
    let mut specs: Vec<String> = kept.map(|(_, spec)| spec.to_string()).collect();
    let others = specs.len();
    specs.extend(task.own_beside(&specs));
    let mut loads = Vec::new();
    for (_, _, spec) in LOADS {
        let workload = Workload::from_spec(&spec.parse()?, &FileInputs)?;
        let options = Options { memtable_bytes: MEMTABLE_BYTES, ..Options::default() };
        let files = FileSizes::measured(&workload, &options)?;
        let files = files.context("the workload is too small to tell what files take")?;
        loads.push((KeyedWorkload::new(workload), files));
    }
    let all = task.each(
        "every policy under every load",
        &specs,
        |_| 1,
        |spec, ticker| {
            let policy = task.policy(spec)?;
            let mut paid = Vec::new();
            for (workload, files) in &loads {
                let content = Content::Keyed(workload);
                let found =
                    simulate_observed(&policy, &content, MEMTABLE_BYTES, Some(files), &mut |_| {});
                let report = found.with_context(|| format!("policy {spec}"))?.report;
                let physical = report.physical.context("keyed simulations count files")?;
                paid.push([
                    physical.write_cost_user,
                    report.costs.read_cost_mean,
                    physical.space_cost_physical_mean,
                    report.costs.merge_bytes_max.max(1) as f64,
                ]);
            }
            ticker.tick(1);
            let is_own = !specs[..others].contains(spec);
            let name = if is_own { spec.clone() } else { policy.spec().name };
            Ok(Known { name, spec: spec.clone(), paid })
        },
    )?;
    Ok((all, others))
}

/// Says where nothing beats the policy called `name`, and what beats it if something always does.
fn verdict(name: &str, all: &[Known], others: &[Known]) -> String {
    let own = || all.iter().filter(|known| known.name == name);
    let stands = |load: usize, costs: usize| {
        own().any(|known| known.beaten_by(others, load, costs).is_none())
    };
    let titles = |costs: usize| {
        let kept = LOADS.iter().enumerate().filter(|(load, _)| stands(*load, costs));
        joined(", ", kept.map(|(_, (_, title, _))| (*title).to_owned()))
    };
    match (titles(MEANS), titles(PAID.len())) {
        (means, _) if !means.is_empty() => format!("{name}: not beaten with {means}."),
        (_, longest) if !longest.is_empty() => format!(
            "{name}: beaten but for its longest merge, which is shorter with {longest}. {}",
            nearest(name, all, others, MEANS)
        ),
        _ => format!("{name}: beaten under every load. {}", nearest(name, all, others, PAID.len())),
    }
}

/// Says what beats the policy by the least at its best.
fn nearest(name: &str, all: &[Known], others: &[Known], costs: usize) -> String {
    let own = || all.iter().filter(|known| known.name == name);
    let beaten = (0..LOADS.len()).flat_map(|load| {
        let of_load = own().filter_map(move |known| known.beaten_by(others, load, costs));
        of_load.map(move |beaten| (load, beaten))
    });
    let nearest =
        beaten.min_by(|(_, one), (_, other)| one.gain(costs).total_cmp(&other.gain(costs)));
    let Some((load, Beaten { own, by, more })) = nearest else { return String::new() };
    let more = PAID.iter().zip(more).take(costs);
    let more = more.map(|(cost, more)| format!("{cost} {:+.0} %", (more - 1.0) * 100.0));
    format!(
        "At its best, with {}, {} has over {}: {}.",
        LOADS[load].1,
        own.spec,
        by.spec,
        joined(", ", more)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str, paid: [f64; 4]) -> Known {
        let spec = format!("{name}(k=2)");
        Known { name: name.to_owned(), spec, paid: vec![paid; LOADS.len()] }
    }

    #[test]
    fn a_policy_is_beaten_by_another_that_is_worse_in_nothing() {
        let all = [
            known("one", [3.0, 5.0, 1.2, 9.0]),
            known("one", [2.9, 4.0, 1.2, 9.0]),
            known("few", [4.0, 2.0, 1.2, 9.0]),
            known("alike", [4.03, 1.99, 1.2, 9.0]),
            known("dear", [4.4, 2.0, 1.2, 9.0]),
            known("short", [4.4, 2.2, 1.2, 3.0]),
        ];
        let beaten_by = |at: usize, costs: usize| {
            all[at].beaten_by(&all, 0, costs).map(|beaten| beaten.by.name.as_str())
        };
        // Nothing is beaten by another setting of its own name, or by what is alike.
        assert_eq!([0, 1, 2, 3].map(|at| beaten_by(at, MEANS)), [None; 4]);
        assert_eq!([4, 5].map(|at| beaten_by(at, PAID.len())), [Some("few"), None]);
        let verdict = |name: &str| verdict(name, &all, &all);
        assert!(verdict("one").starts_with("one: not beaten with new keys, keys in order"));
        assert!(verdict("short").starts_with("short: beaten but for its longest merge"));
        let dear = verdict("dear");
        assert!(dear.starts_with("dear: beaten under every load."), "{dear}");
        assert!(dear.contains("dear(k=2) has over few(k=2): writes +10 %, runs +0 %"), "{dear}");
    }
}
