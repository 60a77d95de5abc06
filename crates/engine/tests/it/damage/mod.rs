//! Damaged files, also such as have right checksums.

mod all_files;
mod changed_bytes;
mod crafted;
mod memory_asked;
mod resealed;
