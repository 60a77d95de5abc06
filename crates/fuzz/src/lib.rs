//! Tools for fuzz targets, random tests and golden scripts. Only tests use this crate.
//!
//! [`dice`] makes repeatable random choices. [`golden`] runs golden scripts.
//!
//! A target is a test that makes one input from [`Choices`] and checks a property of all inputs. If
//! a checksum would refuse most inputs, the target changes the bytes under the checksum and
//! computes the checksum again.
//!
//! ```
//! lsmith_fuzz::fuzz!(100, |choices| {
//!     let mut bytes = b"4 MiB".to_vec();
//!     lsmith_fuzz::change(&mut bytes, choices, true);
//!     let _ = String::from_utf8_lossy(&bytes).parse::<u64>();
//! });
//! ```
//!
//! * `cargo test` makes the given number of inputs from random seeds, 60 times as many with
//!   `LSMITH_FULL=1`. A failing input prints its seed; `LSMITH_SEED` set to it repeats only this
//!   input.
//! * `cargo bolero test` makes choices from the bytes of a coverage-guided fuzzer. These bytes
//!   select the changes, so the fuzzer need not discover checksums.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "inputs are timed, and scripts are files"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bytes;
mod choices;
mod counted;
pub mod dice;
pub mod golden;
mod run;
mod text;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use bolero;
pub use bytes::{change, put_bytes, put_varint, varint, write_at};
pub use choices::Choices;
pub use counted::{allocated_bytes, peak_bytes};
#[doc(hidden)]
pub use run::run;
pub use text::{change_text, text_of};

/// Runs `$target` with `$inputs` inputs, each made from new [`Choices`].
#[macro_export]
macro_rules! fuzz {
    ($inputs:expr, $target:expr) => {{
        let target: fn(&mut $crate::Choices<'_>) = $target;
        #[cfg(fuzzing)]
        $crate::bolero::check!()
            .for_each(move |bytes: &[u8]| target(&mut $crate::Choices::of_bytes(bytes)));
        #[cfg(not(fuzzing))]
        $crate::run($inputs, target);
    }};
}
