//! The disk, the directory of a store, and what is wrong with them.

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
