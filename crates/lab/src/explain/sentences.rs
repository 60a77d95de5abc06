//! Says in words which causes make the difference between two policies.

use super::side::{LevelRuns, LevelSpace, RouteReport, Side};
use lsmith_tree::{Cause, Causes};
use std::collections::BTreeMap;

/// The least share of the difference that gets a sentence.
const SHARE_MIN: f64 = 0.1;
/// The difference is small if it is below this share of what the policy writes that writes less.
/// Shares of a small difference mislead, since they can be many times as large as it.
const SMALL: f64 = 0.05;
/// The share of a cause from which on one route stands for all.
const MAIN_ROUTE: f64 = 0.9;

/// One cause in both policies: everywhere, or in merges into one level.
struct Cell<'a> {
    cause: Cause,
    more: Part<'a>,
    less: Part<'a>,
}

/// The routes of one policy with bytes of a cause.
struct Part<'a> {
    side: &'a Side,
    cause: Cause,
    routes: Vec<&'a RouteReport>,
}

/// Returns the explanation, the most important sentence first.
pub(super) fn of(a: &Side, b: &Side) -> Vec<String> {
    let (more, less) = if b.bytes_written > a.bytes_written { (b, a) } else { (a, b) };
    let mut sentences = vec![headline(more, less)];
    sentences.extend(files(a, b));
    sentences.extend(differences(more, less));
    sentences.push(reads(a, b));
    sentences.extend(space(a, b));
    sentences
}

fn headline(more: &Side, less: &Side) -> String {
    let flushed = match [more, less].map(|side| bytes_text(side.flush_bytes as f64)) {
        [more, less] if more == less => more,
        [more, less] => format!("{more} and {less}"),
    };
    let [written, less_written] = [more, less].map(|side| bytes_text(side.bytes_written as f64));
    if more.bytes_written == less.bytes_written {
        let more = &more.policy;
        let less = &less.policy;
        return format!("{more} and {less} write the same: {written}, for {flushed} flushed.");
    }
    let ratio = more.bytes_written as f64 / less.bytes_written.max(1) as f64;
    let how = how(ratio);
    let more = &more.policy;
    let less = &less.policy;
    format!("{more} writes {how} {less}: {written} against {less_written}, for {flushed} flushed.")
}

/// Says what both write to files. That can differ from logical bytes: append tables write nodes,
/// and edits of many slices make the manifest large.
fn files(a: &Side, b: &Side) -> Option<String> {
    let [of_a, of_b] = [a.physical?.write_cost_user, b.physical?.write_cost_user];
    let (more, less) = if of_b > of_a { ((of_b, b), (of_a, a)) } else { ((of_a, a), (of_b, b)) };
    Some(format!(
        "In files, with the log, filters, nodes and the manifest, {} writes {} {}: {:.2} bytes per \
         byte of keys and values against {:.2}.",
        more.1.name,
        how(more.0 / less.0),
        less.1.name,
        more.0,
        less.0
    ))
}

/// Says how much more is written, in words that the policy with less follows.
fn how(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.001 => "as much as".to_owned(),
        ratio if ratio < 1.01 => format!("{:.1} % more than", (ratio - 1.0) * 100.0),
        ratio if ratio < 1.995 => format!("{:.0} % more than", (ratio - 1.0) * 100.0),
        ratio => format!("{ratio:.1} times as much as"),
    }
}

/// Returns a sentence for each cause with a large share of the difference, and for each large one
/// against it. If the difference is small, there is one for each cause that differs much.
fn differences(more: &Side, less: &Side) -> Vec<String> {
    let difference = more.bytes_written as f64 - less.bytes_written as f64;
    let least = less.bytes_written as f64;
    let mut cells = cells(more, less);
    if difference < SMALL * least {
        cells.sort_by_key(|cell| std::cmp::Reverse(cell.delta().abs()));
        let large = cells.iter().take_while(|cell| cell.delta().abs() as f64 >= SMALL * least);
        return large.filter(|cell| cell.delta() != 0).map(Cell::one_sided).collect();
    }
    let share = |cell: &Cell<'_>| cell.delta() as f64 / difference;
    cells.sort_by(|left, right| share(right).total_cmp(&share(left)));
    let largest = cells.iter().take_while(|cell| share(cell) >= SHARE_MIN);
    let large = largest.map(|cell| cell.makes(share(cell) * 100.0));
    let against = cells.iter().rev().take_while(|cell| share(cell) <= -SHARE_MIN);
    large.chain(against.map(|cell| format!("Against that, {}", cell.one_sided()))).collect()
}

/// Returns all causes of two policies. Bytes carried down, and bytes rewritten in place, are told
/// apart by the level that received them, if both policies build levels.
fn cells<'a>(more: &'a Side, less: &'a Side) -> Vec<Cell<'a>> {
    let have_levels = more.has_levels() && less.has_levels();
    let mut cells: BTreeMap<(Cause, &str), Cell<'a>> = BTreeMap::new();
    for (side, is_more) in [(more, true), (less, false)] {
        for (route, cause) in side.merges.iter().flat_map(|r| Cause::ALL.map(|cause| (r, cause))) {
            if route.causes.bytes(cause) == 0 {
                continue;
            }
            let by_level = have_levels && matches!(cause, Cause::CarriedDown | Cause::Overlap);
            let to = if by_level { route.to.as_str() } else { "" };
            let part = |side| Part { side, cause, routes: Vec::new() };
            let new = || Cell { cause, more: part(more), less: part(less) };
            let cell = cells.entry((cause, to)).or_insert_with(new);
            let part = if is_more { &mut cell.more } else { &mut cell.less };
            part.routes.push(route);
        }
    }
    cells.into_values().collect()
}

impl Cell<'_> {
    /// Returns the sentence for a cause that makes so many percent of the difference.
    fn makes(&self, percent: f64) -> String {
        let Cell { more, less, .. } = self;
        let [more_bytes, less_bytes] = [more.text(), less.text()];
        if self.cause.saves() {
            let what = less.what();
            let more = &more.side.name;
            let less = &less.side.name;
            return format!(
                "{percent:.0} % of the difference is {what}, which saves {less_bytes} under {less} \
                 and {more_bytes} under {more}."
            );
        }
        let what = more.what();
        let ratio = more.ratio();
        let most = more.most();
        format!(
            "{percent:.0} % of the difference is {what}: {more_bytes} against \
             {less_bytes}{ratio}{most}."
        )
    }

    /// Returns the sentence for a cause by which one policy writes more, or saves more.
    fn one_sided(&self) -> String {
        let delta = bytes_text(self.delta().unsigned_abs() as f64);
        let (verb, is_of_more) = match self.cause.saves() {
            true => ("saves", self.delta() < 0),
            false => ("writes", self.delta() > 0),
        };
        let parts = [&self.more, &self.less];
        let [by, other] = if is_of_more { parts } else { [parts[1], parts[0]] };
        format!(
            "{} {verb} {delta} more by {}: {} against {}{}{}.",
            by.side.name,
            by.what(),
            by.text(),
            other.text(),
            by.ratio(),
            by.most()
        )
    }

    /// Returns by how many bytes this cause makes the policy that writes more write more.
    fn delta(&self) -> i64 {
        self.more.bytes() - self.less.bytes()
    }
}

impl Part<'_> {
    fn bytes(&self) -> i64 {
        self.routes.iter().map(|route| route.causes.bytes(self.cause)).sum()
    }

    fn text(&self) -> String {
        bytes_text(self.bytes().unsigned_abs() as f64)
    }

    /// Returns the route that stands for all, if there is one.
    fn main_route(&self) -> Option<&RouteReport> {
        let bytes = |route: &&&RouteReport| route.causes.bytes(self.cause).abs();
        let main = self.routes.iter().max_by_key(bytes)?;
        (bytes(&main) as f64 >= MAIN_ROUTE * self.bytes().abs() as f64).then_some(*main)
    }

    /// Returns what was done, as a gerund.
    fn what(&self) -> String {
        let main = self.main_route().map(|route| (route.from.as_str(), route.to.as_str()));
        match (self.cause, main) {
            (Cause::Flushed, _) => "flushing memory".to_owned(),
            (Cause::CarriedDown, Some((from, to))) if from == to => {
                format!("merging runs of {to} with each other")
            }
            (Cause::CarriedDown, Some((from, to))) if from != "memory" => {
                format!("carrying {from} down to {}", place(to))
            }
            (Cause::CarriedDown, _) => match self.common_place() {
                Some(to) => format!("carrying newer runs down to {}", place(to)),
                None => "carrying newer runs down to older ones".to_owned(),
            },
            (Cause::Overlap, Some((from, to))) if from != to => {
                let are = if from == "newer runs" { "are" } else { "is" };
                format!("rewriting {} when {from} {are} merged into it", place(to))
            }
            (Cause::Overlap, _) => match self.common_place() {
                Some(to) => format!("rewriting {} when newer bytes are merged into it", place(to)),
                None => "rewriting older runs when newer bytes are merged into them".to_owned(),
            },
            (Cause::Compacted, _) => "rewriting blocks without newer bytes".to_owned(),
            (Cause::Dropped, _) => "dropping obsolete entries".to_owned(),
            (Cause::Moved, _) => "moving bytes down without writing them".to_owned(),
            (Cause::Reused, _) => "keeping blocks as they are".to_owned(),
        }
    }

    /// Returns the place of all outputs, if it is the same.
    fn common_place(&self) -> Option<&str> {
        let to = self.routes.first()?.to.as_str();
        self.routes.iter().all(|route| route.to == to).then_some(to)
    }

    /// Returns which place has most of the bytes, or nothing if one route stands for all.
    fn most(&self) -> String {
        if self.main_route().is_some() || self.common_place().is_some() {
            return String::new();
        }
        let bytes = |route: &&&RouteReport| route.causes.bytes(self.cause).abs();
        let Some(most) = self.routes.iter().max_by_key(bytes) else { return String::new() };
        let share = bytes(&most) as f64 / self.bytes().abs().max(1) as f64 * 100.0;
        format!(", {share:.0} % of it in {}", place(&most.to).trim_end_matches(','))
    }

    /// Returns how large the cause is relative to what brings it about, or nothing.
    fn ratio(&self) -> String {
        let mut causes = Causes::default();
        self.routes.iter().for_each(|route| causes.add(&route.causes));
        let bytes = self.bytes() as f64;
        match self.cause {
            Cause::Overlap => {
                // Moved bytes are not merged into anything.
                let arriving = [Cause::Flushed, Cause::CarriedDown, Cause::Moved];
                let newer: i64 = arriving.into_iter().map(|cause| causes.bytes(cause)).sum();
                let ratio = bytes / newer.max(1) as f64;
                format!(" (each byte merged down rewrites {ratio:.1} bytes there)")
            }
            Cause::CarriedDown => {
                let ratio = bytes / self.side.flush_bytes.max(1) as f64;
                format!(" ({ratio:.1} times all bytes flushed)")
            }
            _ => String::new(),
        }
    }
}

fn place(to: &str) -> &str {
    if to == "run 1" { "run 1, the oldest," } else { to }
}

/// Returns how many runs a lookup considers, and where they are.
fn reads(a: &Side, b: &Side) -> String {
    let part = |side: &Side, under: &str| {
        let some: Vec<_> = side.reads.iter().filter(|reads| reads.runs_mean >= 0.05).collect();
        let level = |reads: &&LevelRuns| format!("{:.1} in {}", reads.runs_mean, reads.level);
        let each = some.iter().map(level).collect::<Vec<_>>().join(", ");
        let levels = if some.len() > 1 { format!(" ({each})") } else { String::new() };
        format!("{:.1} {under} {}{levels}", side.read_cost_mean, side.name)
    };
    format!("A lookup considers {} and {}.", part(a, "runs under"), part(b, "under"))
}

/// Returns where obsolete bytes lie. `None` if no level of either policy was sampled.
fn space(a: &Side, b: &Side) -> Option<String> {
    let part = |side: &Side| {
        let held: f64 = side.space.iter().map(|level| level.bytes_mean).sum();
        let obsolete: f64 = side.space.iter().map(|level| level.obsolete_bytes_mean).sum();
        let by_bytes = |left: &&LevelSpace, right: &&LevelSpace| {
            left.obsolete_bytes_mean.total_cmp(&right.obsolete_bytes_mean)
        };
        let whence = match side.space.iter().max_by(by_bytes) {
            Some(most) if obsolete > 0.0 && side.space.len() > 1 => {
                let share = most.obsolete_bytes_mean / obsolete * 100.0;
                format!(" ({share:.0} % of them in {})", most.level)
            }
            _ => String::new(),
        };
        let share = obsolete / held * 100.0;
        let name = &side.name;
        (held > 0.0).then(|| format!("{share:.0} % of the bytes under {name} are obsolete{whence}"))
    };
    let parts: Vec<_> = [a, b].into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| format!("{}.", parts.join(", ")))
}

/// Returns bytes with three digits and a decimal unit.
fn bytes_text(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1e9 => (bytes / 1e9, "GB"),
        bytes if bytes >= 1e6 => (bytes / 1e6, "MB"),
        bytes if bytes >= 1e3 => (bytes / 1e3, "kB"),
        bytes => return format!("{bytes:.0} B"),
    };
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy that carried and rewrote these bytes of level 0 and 1, and kept some of them.
    fn side(name: &str, carried: i64, overlap: i64, reused: i64) -> Side {
        let mut causes = Causes::default();
        causes.add_bytes(Cause::CarriedDown, carried);
        causes.add_bytes(Cause::Overlap, overlap);
        causes.add_bytes(Cause::Reused, -reused);
        let bytes_written = causes.written() as u64;
        let from = "level 0".to_owned();
        let to = "level 1".to_owned();
        let reads = |level: &str| LevelRuns { level: level.to_owned(), runs_mean: 1.0 };
        Side {
            policy: format!("{name}(full=spec)"),
            name: name.to_owned(),
            bytes_written,
            flush_bytes: 1000,
            write_cost_system: 0.0,
            read_cost_mean: 2.0,
            space_cost_mean: 0.0,
            physical: None,
            causes,
            entries_written: 0,
            tombstones_written: 0,
            merges: vec![RouteReport { from, to, merges: 1, moves: 0, causes, bytes_written }],
            sizes: Vec::new(),
            rules: Vec::new(),
            reads: vec![reads("level 0"), reads("level 1")],
            space: Vec::new(),
        }
    }

    #[test]
    fn large_differences_have_shares() {
        let sentences = of(&side("light", 1500, 500, 0), &side("heavy", 1000, 4500, 500));
        assert_eq!(
            sentences[..4],
            [
                "heavy(full=spec) writes 2.5 times as much as light(full=spec): 5.00 kB against \
                 2.00 kB, for 1.00 kB flushed.",
                "133 % of the difference is rewriting level 1 when level 0 is merged into it: \
                 4.50 kB against 500 B (each byte merged down rewrites 4.5 bytes there).",
                "Against that, heavy saves 500 B more by keeping blocks as they are: 500 B \
                 against 0 B.",
                "Against that, light writes 500 B more by carrying level 0 down to level 1: \
                 1.50 kB against 1.00 kB (1.5 times all bytes flushed).",
            ]
        );
        let reads = "A lookup considers 2.0 runs under light (1.0 in level 0, 1.0 in level 1) and \
                     2.0 under heavy (1.0 in level 0, 1.0 in level 1).";
        assert_eq!(sentences[4..], [reads]);
    }

    #[test]
    fn small_differences_have_none() {
        let sentences = of(&side("heavy", 1000, 4500, 400), &side("light", 1000, 4000, 0));
        assert_eq!(
            sentences[..3],
            [
                "heavy(full=spec) writes 2 % more than light(full=spec): 5.10 kB against 5.00 kB, \
                 for 1.00 kB flushed.",
                "heavy writes 500 B more by rewriting level 1 when level 0 is merged into it: \
                 4.50 kB against 4.00 kB (each byte merged down rewrites 4.5 bytes there).",
                "heavy saves 400 B more by keeping blocks as they are: 400 B against 0 B.",
            ]
        );
        let equal = of(&side("one", 10, 10, 0), &side("two", 10, 10, 0));
        assert_eq!(equal.len(), 2, "{equal:?}");
    }

    #[test]
    fn bytes_have_three_digits() {
        for (bytes, text) in
            [(0.0, "0 B"), (999.0, "999 B"), (1234.0, "1.23 kB"), (45_678_901.0, "45.7 MB")]
        {
            assert_eq!(bytes_text(bytes), text);
        }
        assert_eq!(bytes_text(2e12), "2000 GB");
    }
}
