//! What fuzz targets, random tests and golden scripts have in common. Only tests use it.
//!
//! [`dice`] is for tests that make random choices and can make them again. [`golden`] plays
//! golden scripts.
//!
//! A target is a test that makes one input from [`Choices`] and does with it what must hold for
//! every input. Where a checksum would stop all but a few, it changes what is below the checksum
//! and seals that again.
//!
//! ```
//! lsmith_fuzz::fuzz!(100, |choices| {
//!     let mut bytes = b"4 MiB".to_vec();
//!     lsmith_fuzz::change(&mut bytes, choices, true);
//!     let _ = String::from_utf8_lossy(&bytes).parse::<u64>();
//! });
//! ```
//!
//! * `cargo test` makes so many inputs from random seeds, 60 times as many with `LSMITH_FULL=1`.
//!   One that fails prints its seed: `LSMITH_SEED` set to it makes that input and no other.
//! * `cargo bolero test` makes choices of the bytes that a coverage-guided fuzzer gives it. These
//!   bytes decide what is changed and how: a fuzzer need not find out about checksums.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "inputs are timed, and scripts are files"
)]

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
pub use bytes::{change, put_varint, varint, write_at};
pub use choices::Choices;
pub use counted::peak_bytes;
#[doc(hidden)]
pub use run::run;
pub use text::{change_text, text_of};

/// Does with `$inputs` inputs, each made of the [`Choices`] that it is given, what `$target` says.
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
