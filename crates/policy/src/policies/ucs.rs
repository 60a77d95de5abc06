//! Unified: Cassandra's UnifiedCompactionStrategy, from leveled to tiered by one number.

mod adaptive;

use crate::pressure::pressure_of_runs;
use crate::read_price::ReadPrice;
use crate::{Eager, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, Stack};
use adaptive::Adaptive;
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// Sorts runs into levels by size. Level `l` begins at the size of a memtable times the fan factors
/// of all levels above. As soon as a level has `t` runs, all of them become one. The scaling
/// parameter `w` of a level sets its fan factor `f` and `t`: `Lf` (leveled) has `t` = 2, `Tf`
/// (tiered) has `t` = `f`, and `N` has both at 2. Of several levels that are due, the one with most
/// runs goes first, and of equal ones the lowest.
///
/// Cassandra merges runs of a level wherever they are in age. Here a merge takes neighbours. So a
/// run that is older than a larger one counts as being on the level of that one. Cassandra goes by
/// density, which is size over the width of a range of keys, and cuts tables at fixed keys: here
/// runs cover all keys. It takes the mean size of flushes for the size of a memtable. When it is
/// far behind, it may merge the oldest runs of a level alone; this always merges all.
///
/// With `w=adaptive` all levels have the one parameter with which reads and merges cost least, by
/// the reads of the last eight or so memtables. With `n` flushes in the tree there are `log_f(n)`
/// levels, and
///
/// | levels | runs of a lookup | a byte is written |
/// |---|---|---|
/// | tiered, `Tf` | `(f - 1) log_f(n)` | `log_f(n)` times |
/// | leveled, `Lf` | `log_f(n)` | `(f - 1) log_f(n)` times |
///
/// A run costs what the reads of one memtable pay for it. Of the parameters from `L12` to `T52` the
/// cheapest is taken. The parameter of the last merge is kept unless another one is cheaper by more
/// than 15 %, so that small changes of the load merge nothing. Before reads were counted it is `N`.
///
/// Cassandra 5.0 has fixed parameters alone. Its fork by DataStax adapts them, with these limits
/// and formulas. It looks at a clock every two minutes, and costs are times that it measures on the
/// device. Here it looks at each merge, and costs are given in written bytes.
///
/// Source: Cassandra 5.0, `UnifiedCompactionStrategy`, its proposal CEP-26, and its documents for
/// the formulas. For `adaptive`: the options of DataStax Enterprise 6.8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ucs {
    scales: Scales,
    eager: Eager,
}

/// The scaling parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scales {
    /// Of levels 0, 1 and so on. The last one repeats.
    Fixed(Vec<Scale>),
    /// One for all levels, by what is read.
    Adaptive(Adaptive),
}

/// The value of `w` that asks for [`Scales::Adaptive`].
const ADAPTIVE: (&str, &str) = ("w", "adaptive");

/// The scaling parameter of a level, from -998 to 998.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale(i64);

const SCALE_MAX: i64 = 998;

impl Scale {
    fn parse(text: &str) -> Option<Scale> {
        let factor = |rest: &str| rest.parse().ok().map(|factor: i64| factor.saturating_sub(2));
        let (kind, rest) = text.split_at_checked(1)?;
        let scale = match kind {
            "N" if rest.is_empty() => 0,
            "T" => factor(rest).filter(|scale| *scale >= 0)?,
            "L" => -factor(rest).filter(|scale| *scale >= 0)?,
            _ => text.parse().ok()?,
        };
        (-SCALE_MAX..=SCALE_MAX).contains(&scale).then_some(Scale(scale))
    }

    fn text(self) -> String {
        match self.0 {
            0 => "N".to_owned(),
            1.. => format!("T{}", self.fan_factor()),
            _ => format!("L{}", self.fan_factor()),
        }
    }

    fn fan_factor(self) -> u64 {
        self.0.unsigned_abs() + 2
    }

    /// Returns the runs of a level at which they are merged.
    fn threshold(self) -> usize {
        if self.0 > 0 { self.fan_factor() as usize } else { 2 }
    }
}

impl Ucs {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "ucs",
        source: "Cassandra 5.0, UnifiedCompactionStrategy (CEP-26)",
        summary: "merges the runs of a level, by size, when there are 2 (leveled) or f (tiered)",
        params: &[
            ParamInfo {
                name: "w",
                default: "T4",
                meaning: "scaling parameter: Lf leveled or Tf tiered with fan factor f, 2 to 1000, \
                          N for both with 2, or Cassandra's number, such as -8 for L10; a list for \
                          levels 0, 1 and so on, as T8/T4/L4, of which the last repeats; or \
                          `adaptive`: by the reads that are counted",
            },
            ParamInfo {
                name: "get",
                default: "24",
                meaning: "with w=adaptive: written bytes that cost as much as one run in a lookup",
            },
            ParamInfo {
                name: "scan",
                default: "430",
                meaning: "with w=adaptive: written bytes that cost as much as one run in a range \
                          read",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Ucs::read(params)?)),
    };

    /// Returns the policy with the scaling parameters `w` of levels 0, 1 and so on, as in a spec:
    /// `T4`, `T8/L10`. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `w` is no list of scaling parameters.
    pub fn new(w: &str) -> Result<Ucs, SpecError> {
        Ucs::INFO.read(&Spec::bare(Ucs::INFO.name).with("w", w), Ucs::read)
    }

    fn read(params: &Params<'_>) -> Result<Ucs, SpecError> {
        let eager = Eager::read(params)?;
        if let Some(price) = ReadPrice::read(params, ADAPTIVE, ReadPrice::IN_MEMORY)? {
            return Ok(Ucs { scales: Scales::Adaptive(Adaptive { price }), eager });
        }
        let text = params.text("w").unwrap_or("T4");
        let scales = text.split('/').map(|part| Scale::parse(part.trim())).collect();
        let error = || SpecError::Value {
            param: "w".to_owned(),
            found: text.to_owned(),
            expected: "scaling parameters such as T4, L10, N or -8, a list as T8/L4, or adaptive"
                .to_owned(),
        };
        let scales: Option<Vec<Scale>> = scales;
        Ok(Ucs { scales: Scales::Fixed(scales.ok_or_else(error)?), eager })
    }

    /// Returns the scaling parameter of each level for the tree of `view`. The last one repeats.
    fn scales(&self, view: &TreeView, stack: &Stack) -> Levels {
        Levels(match &self.scales {
            Scales::Fixed(scales) => scales.clone(),
            Scales::Adaptive(adaptive) => vec![adaptive.scale(view, stack)],
        })
    }
}

/// The scaling parameters of levels 0, 1 and so on. The last one repeats.
struct Levels(Vec<Scale>);

impl Levels {
    /// Returns the scaling parameter of `level`.
    fn scale(&self, level: usize) -> Scale {
        self.0.get(level).or(self.0.last()).copied().unwrap_or(Scale(2))
    }

    /// Returns the levels, youngest first, as runs of `stack`: the range of their indexes, which
    /// can be empty.
    fn of(&self, stack: &Stack, memtable_bytes: u64) -> Vec<Range<usize>> {
        let mut levels = Vec::new();
        let mut end_bytes = memtable_bytes.max(1);
        let mut from = 0;
        while from < stack.len() {
            end_bytes = end_bytes.saturating_mul(self.scale(levels.len()).fan_factor());
            let is_larger = |bytes: u64| bytes >= end_bytes && end_bytes < u64::MAX;
            let larger = stack.runs()[from..].iter().position(|run| is_larger(run.bytes));
            let end = larger.map_or(stack.len(), |larger| from + larger);
            levels.push(from..end);
            from = end;
        }
        levels
    }
}

impl MergePolicy for Ucs {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("ucs");
        self.eager.write(match &self.scales {
            Scales::Fixed(scales) => {
                let scales: Vec<_> = scales.iter().map(|scale| scale.text()).collect();
                spec.with("w", scales.join("/"))
            }
            Scales::Adaptive(Adaptive { price }) => {
                price.write(spec.with(ADAPTIVE.0, ADAPTIVE.1), ReadPrice::IN_MEMORY)
            }
        })
    }

    fn needs(&self) -> Needs {
        Needs { reads: matches!(self.scales, Scales::Adaptive(_)), ..Needs::default() }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < 2 {
            return None;
        }
        let stack = Stack::of(view);
        let scales = self.scales(view, &stack);
        let levels = scales.of(&stack, view.memtable_bytes).into_iter().enumerate();
        let mut due: Vec<_> =
            levels.filter(|(level, runs)| runs.len() >= scales.scale(*level).threshold()).collect();
        due.sort_by_key(|(_, runs)| Reverse(runs.len()));
        let mut plan = due.into_iter().find_map(|(level, runs)| {
            let numbers = [level as u64, runs.len() as u64, scales.scale(level).threshold() as u64];
            let reason = Reason::new("level {} has {} runs of {}", numbers);
            stack.merge(runs.start, runs.end, self.eager, reason)
        })?;
        if matches!(self.scales, Scales::Adaptive(_)) {
            plan.memo.push(adaptive::note(scales.scale(0)));
        }
        Some(plan)
    }

    /// The bound of the shape holds for any data. Runs that hold writers back are those beyond what
    /// the levels of these data may have.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let stack = Stack::of(view);
        let scales = self.scales(view, &stack);
        let levels = scales.of(&stack, view.memtable_bytes).len().max(1);
        let allowed = (0..levels).map(|level| scales.scale(level).threshold() as u64 - 1).sum();
        pressure_of_runs(view, view.tree.disk_run_count(), allowed, load)
    }

    /// Every level at least doubles, and sizes are 64-bit numbers.
    fn shape(&self) -> Shape {
        let scales = match &self.scales {
            Scales::Fixed(scales) => Levels(scales.clone()),
            Scales::Adaptive(_) => Levels(vec![adaptive::MOST]),
        };
        let allowed = (0..64).map(|level| scales.scale(level).threshold() as u64 - 1);
        Shape::Stack { runs_max: allowed.sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: what `UnifiedCompactionStrategyTest` of Cassandra says of memtables of 2 MB.
    #[test]
    fn levels_begin_where_those_of_cassandra_do() {
        for (w, ends) in [
            ("3", &[10, 50][..]),
            ("2", &[8, 32, 128]),
            ("0", &[4, 8, 16, 32, 64]),
            ("-2", &[8, 32, 128]),
            ("30/2/-6", &[64, 256, 2048]),
            ("0/0/0/-2/-2", &[4, 8, 16, 64, 256, 1024]),
        ] {
            let ucs = Ucs::new(w).unwrap();
            // A run below each end, and one at it.
            let sizes = ends.iter().flat_map(|end| [end - 1, *end]);
            let runs = sizes.enumerate().map(|(index, megabytes)| {
                let name = 100 - index;
                format!("r{name}[t{name}:a..z {megabytes}MB]")
            });
            let view =
                format!("view memtable 2MB\ntree\nL0 {}", runs.collect::<Vec<_>>().join(" "));
            let view: TreeView = view.parse().unwrap();
            let stack = Stack::of(&view);
            let found = ucs.scales(&view, &stack).of(&stack, view.memtable_bytes);
            let expected: Vec<Range<usize>> = (0..=ends.len())
                .map(|level| (2 * level).saturating_sub(1)..(2 * level + 1).min(2 * ends.len()))
                .collect();
            assert_eq!(found, expected, "{w}");
        }
    }

    #[test]
    fn scaling_parameters_are_spelled_as_in_cassandra() {
        for (w, text) in [("2", "T4"), ("-8", "L10"), ("L2", "N"), ("T2/ 6 /N", "N/T8/N")] {
            assert_eq!(Ucs::new(w).unwrap().spec().param("w"), Some(text), "{w}");
        }
        for w in ["", "T", "T1", "L-4", "X4", "T4/", "999", "-999", "L1001", "N2", "ä"] {
            let error = Ucs::new(w).unwrap_err().to_string();
            assert!(error.contains("is not scaling parameters such as T4"), "{w}: {error}");
        }
    }
}
