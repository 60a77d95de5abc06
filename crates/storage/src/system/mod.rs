//! All that is an operating system's own: one file per system, with the same functions in each.
//!
//! * `linux`, `macos`: with what both share in `unix`.
//! * `windows`.
//! * `lacking`: WebAssembly, in a browser with `clockless`.
//! * `without`: what all but Linux do without.
//! * `ring`: reads of Linux that begin before their bytes are needed; `no_ring` elsewhere.
//!
//! No other module names an operating system. docs/platforms.md says what each one promises.

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod clockless;
#[cfg(target_family = "wasm")]
mod lacking;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(target_family = "wasm"))]
mod memory;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod no_ring;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod ring;
mod types;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(not(target_os = "linux"))]
mod without;

#[cfg(target_family = "wasm")]
pub(crate) use lacking::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;
#[cfg(not(target_family = "wasm"))]
pub(crate) use memory::Memory;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) use no_ring::Ring;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use ring::Ring;
#[cfg(windows)]
pub(crate) use windows::*;

#[cfg(not(any(
    target_os = "linux",
    target_os = "macos",
    target_family = "windows",
    target_family = "wasm"
)))]
compile_error!(
    "lsmith does not know this operating system: it knows Linux, macOS, Windows and WebAssembly. \
     Add a file for it to crates/storage/src/system, beside `lacking.rs`"
);

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) use std::time::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) use clockless::Instant;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
use clockless::since_1970;

pub(crate) use types::{EarlyPlace, FileId, Shortage};

use std::time::Duration;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn since_1970() -> Duration {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Returns true if both paths lead to the same file or directory.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn is_same(one: &std::path::Path, other: &std::path::Path) -> std::io::Result<bool> {
    Ok(id_at(one)? == id_at(other)?)
}

/// Returns the CPU time that this thread has used so far, user and system. It is zero on a system
/// that does not count it.
pub fn thread_cpu_time() -> Duration {
    thread_cpu()
}

/// Returns the CPU time that this process has used so far, user and system. It is zero on a system
/// that does not count it.
pub fn process_cpu_time() -> Duration {
    process_cpu()
}

/// Returns the time since the start of 1970. It is zero on a system without a clock.
#[must_use]
pub fn unix_time() -> Duration {
    since_1970()
}
