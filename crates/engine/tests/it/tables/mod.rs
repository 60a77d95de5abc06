//! Tables: compressed, mapped, dropped.

mod cold_pages;
mod compression;
mod dropped;
mod mapped;
