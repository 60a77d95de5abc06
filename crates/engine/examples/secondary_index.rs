//! A secondary index: users are found by their number and by their city.
//!
//! The index is a keyspace of its own. Its keys are a city, a zero byte and the number of a user,
//! and its values are empty. A batch changes both keyspaces or neither, also across a crash, so the
//! index never lies. A snapshot reads both at the same moment.
//!
//! This program has one writer. If several threads change the same user, use a transaction in the
//! place of the batch: it fails if another thread has changed what it read.
//!
//! `cargo run -p lsmith --example secondary_index`

use lsmith::{Batch, Keyspace, PersistMode, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

struct Users {
    store: Store,
    cities: Keyspace,
    by_city: Keyspace,
}

impl Users {
    fn index_key(city: &[u8], number: &str) -> Vec<u8> {
        [city, b"\0", number.as_bytes()].concat()
    }

    /// Sets the city of a user, and replaces the entry of the index.
    fn move_to(&self, number: &str, city: &str) -> lsmith::Result<()> {
        let mut batch = Batch::new();
        if let Some(old) = self.cities.get(number)? {
            batch.delete(&self.by_city, Self::index_key(&old, number));
        }
        batch.put(&self.cities, number, city);
        batch.put(&self.by_city, Self::index_key(city.as_bytes(), number), "");
        self.store.write(batch, PersistMode::Buffer)
    }

    /// Returns the numbers of the users in `city`, in their order.
    fn in_city(&self, city: &str) -> lsmith::Result<Vec<String>> {
        let prefix = Self::index_key(city.as_bytes(), "");
        let snapshot = self.store.snapshot();
        let found = snapshot.prefix(&self.by_city, &prefix).map(|entry| {
            let (key, _) = entry?;
            Ok(String::from_utf8_lossy(&key[prefix.len()..]).into_owned())
        });
        found.collect()
    }
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).open()?;
    let (cities, by_city) = (store.keyspace("users")?, store.keyspace("users_by_city")?);
    let users = Users { store, cities, by_city };
    for (number, city) in [("1", "Oslo"), ("2", "Rome"), ("3", "Oslo"), ("1", "Rome")] {
        users.move_to(number, city)?;
    }
    writeln!(out, "Oslo {:?}, Rome {:?}", users.in_city("Oslo")?, users.in_city("Rome")?)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
