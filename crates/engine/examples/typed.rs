//! A typed view: a table of Rust values, with numbers that the table gives out.
//!
//! The store keeps bytes in the order of bytes. So the view writes numbers with their greatest byte
//! first, and then they are in the order of numbers. It writes values by serde, here as JSON: a
//! later version of the program can add fields. Other formats of serde are written the same way.
//!
//! `cargo run -p lsmith --example typed`

use lsmith::{Keyspace, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Table<V> {
    rows: Keyspace,
    /// The next number of each table, by name.
    numbers: Keyspace,
    values: PhantomData<V>,
}

impl<V: Serialize + DeserializeOwned> Table<V> {
    fn open(store: &Store, name: &str) -> Result<Table<V>> {
        let (rows, numbers) = (store.keyspace(name)?, store.keyspace("numbers")?);
        Ok(Table { rows, numbers, values: PhantomData })
    }

    /// Adds a value, and returns its number. Threads can call this at the same time.
    fn add(&self, value: &V) -> Result<u64> {
        let name = self.rows.name();
        loop {
            let old = self.numbers.get(name)?;
            let number =
                old.as_deref().map_or(Ok(0), |old| old.try_into().map(u64::from_be_bytes))?;
            let next = (number + 1).to_be_bytes();
            if self.numbers.compare_and_swap(name, old.as_deref(), Some(&next))?.is_ok() {
                self.rows.put(number.to_be_bytes(), serde_json::to_vec(value)?)?;
                return Ok(number);
            }
        }
    }

    fn get(&self, number: u64) -> Result<Option<V>> {
        let value = self.rows.get(number.to_be_bytes())?;
        Ok(value.map(|value| serde_json::from_slice(&value)).transpose()?)
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = Result<(u64, V)>> {
        self.rows.iter().map(|entry| {
            let (key, value) = entry?;
            Ok((u64::from_be_bytes(key[..].try_into()?), serde_json::from_slice(&value)?))
        })
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct User {
    name: String,
    born: u16,
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<()> {
    let users = Table::<User>::open(&Store::builder(dir).open()?, "users")?;
    for (name, born) in [("ada", 1815), ("grace", 1906), ("kurt", 1906)] {
        users.add(&User { name: name.into(), born })?;
    }
    writeln!(out, "number 1 is {}", users.get(1)?.map_or("nobody".into(), |user| user.name))?;
    for entry in users.iter().rev() {
        let (number, User { name, born }) = entry?;
        writeln!(out, "{number}: {name}, {born}")?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
