//! Tables: compressed, mapped, dropped.

// Tables are not mapped on Windows.
#[cfg(unix)]
mod cold_pages;
mod compression;
mod dropped;
mod mapped;
