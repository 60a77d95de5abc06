//! What the store has to say while it works, as lines on standard error.

use std::io;
use tracing_subscriber::filter::LevelFilter;

/// Prints warnings and errors of the store, one line each.
pub(crate) fn begin() {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(io::stderr)
        .with_target(false)
        .without_time()
        .with_ansi(false)
        .init();
}
