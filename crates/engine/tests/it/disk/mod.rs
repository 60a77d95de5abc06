//! The disk, the directory of a store, and what is wrong with them.

// Limits of a process, and a list of what it has open, as Unix has them.
#[cfg(unix)]
mod descriptors;
mod destroy;
mod directories;
mod faults;
mod file_systems;
mod full;
mod inspection;
mod moved;
mod space;
mod taken_names;
mod unknown_files;
