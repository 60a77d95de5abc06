//! Readers in other processes, beside a writer.

mod contents;
mod failed_refresh;
mod killed;
mod leases;
mod overtaken;
