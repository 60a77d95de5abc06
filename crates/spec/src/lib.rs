//! One spelling for names with parameters, sizes and counts.
//!
//! Policies, workloads and everything else that a user names with settings are written the same
//! way, `name(param=value, ...)`, and printed the same way they are parsed. This crate knows the
//! grammar and the units; it knows no policy and no workload. It never panics on any text.
//!
//! * [`Spec`]: a parsed name with its arguments; [`Spec::parse_list`] reads several, split by `;`.
//! * [`Params`]: reads the arguments of a spec with defaults and ranges, and refuses unknown ones.
//! * [`parse_bytes`] and [`parse_count`]: `4MiB`, `100k`, with exact printers as counterparts.
//! * [`SpecError`]: what was found, what was expected, where, and the nearest known spelling.
//!
//! ```
//! use lsmith_spec::{Params, Spec};
//!
//! let spec: Spec = "tiered( ratio = 4 )".parse()?;
//! assert_eq!(spec.to_string(), "tiered(ratio=4)");
//!
//! let params = Params::new(&spec, &["ratio"], 0)?;
//! assert_eq!(params.count("ratio", 10, 2..=64)?, 4);
//! # Ok::<(), lsmith_spec::SpecError>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
#[cfg(test)]
mod fuzz;
mod nearest;
mod params;
mod quantity;
pub mod random;
mod spec;

pub use error::SpecError;
pub use nearest::nearest;
pub use params::Params;
pub use quantity::{format_bytes, format_count, parse_bytes, parse_count};
pub use spec::Spec;
