//! Checkpoints and backups.

mod backup;
mod backup_stops;
mod checkpoint;
mod checkpoint_kinds;
mod checkpoint_stops;
mod nested;
