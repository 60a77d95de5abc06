//! The text form of trees, views, plans and edits: one notation for test fixtures, traces, command
//! output, bug reports and the manifest.
//!
//! ```text
//! tree flushes 6
//! L0 r4[t4:a..z 1MB] r3[t3:a..z 1MB]      # a level: its runs, newest first
//! L1 r2[t2:a..g 2MB 40e, t1:g..z 1MB]     # a run: its slices, in key order
//! ```
//!
//! * A slice is `table:range size`; the size is logical bytes, then entries as `40e` and
//!   tombstones as `2d` where there are any, then sequence numbers as `s1..40`, the root of an
//!   append table as `root 3` (`root 3 dead 5kB born 17` if its file has more bytes, and was
//!   begun after 17 flushes), and the profile as `{k 64KiB 20e, m..p 128KiB 40e}`: nothing lies
//!   between `m` and `p`. A part of a table is `t4:c..f of a..z 1MB`: what follows `of` are facts
//!   about the whole table.
//!   A table that has tombstones says `deleted 7` if the seventh flush brought the oldest.
//! * `reads 64 640 0 9` of a tree are the sums of its [`Reads`](crate::Reads): memtables, lookups
//!   that found a value, that found none, and range reads.
//! * A range is half open; a missing bound is no bound: `..` is everything.
//! * A key is bare where it is made of letters, digits, `_`, `-` and `/`, else quoted with `\xNN`
//!   escapes; `#12` is the eight bytes of the number 12, `#12+` the least key above that.
//! * `# ` starts a comment, which on a plan is its reason.
//!
//! ```
//! use lsmith_tree::{MergePlan, Tree};
//!
//! let tree: Tree = "tree\nL0 r2[t2:a..m 1MB] r1[t1:b..z 1MB]".parse()?;
//! assert_eq!(tree.disk_bytes(), 2_000_000);
//! let plan: MergePlan = "merge r2 r1 over .. into new run at L1 # two runs".parse()?;
//! assert_eq!(plan.to_string().parse::<MergePlan>()?, plan);
//! # Ok::<(), lsmith_tree::text::TextError>(())
//! ```

mod parse;
mod print;
mod scan;
#[cfg(test)]
mod tests;

pub use parse::parse_key;
pub use print::{DisplayKey, display_key};
pub use scan::TextError;
