//! Write-ahead logs, and the feed that reads them.

mod damage;
mod feed;
mod feed_damage;
mod files;
mod records;
mod row;
mod stuck;
