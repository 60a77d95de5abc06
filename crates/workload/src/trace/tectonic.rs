//! Specs of Tectonic, a generator of workloads whose phases differ: what they say is drawn here.
//!
//! A spec has sections, and sections have groups, which follow each other. A group says how many
//! operations of each kind it has; they are mixed. The operations of a section meet keys that the
//! section has inserted and not deleted.

mod draw;
mod json;

use std::collections::BTreeMap;

use self::draw::{Letters, Number, Text};
use self::json::Json;
use super::op::TraceOpKind;
use super::reader::Reader;
use super::record::{Record, checked_size};
use crate::Rng;

/// Most operations of a group.
const OPS_MAX: f64 = 1e8;

/// How often an absent key is drawn until it is absent.
const TRIES_MAX: usize = 1000;

/// The kinds of operations, by their names in a group.
const KINDS: [&str; 9] = [
    "inserts",
    "updates",
    "merges",
    "point_deletes",
    "empty_point_deletes",
    "range_deletes",
    "point_queries",
    "empty_point_queries",
    "range_queries",
];

/// Returns true if a file that starts with `start` may be a spec.
pub(super) fn starts(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"{")
}

/// Draws the operations of the spec `text` into `reader`, until it is full. Fails with a line, if
/// one is to blame, and a message.
pub(super) fn generate(
    text: &str,
    seed: u64,
    reader: &mut Reader,
) -> Result<(), (Option<u64>, String)> {
    let spec = Json::parse(text).map_err(|(line, message)| (Some(line), message))?;
    let mut rng = Rng::new(seed, 0);
    let sections = list(&spec, "sections").map_err(|message| (None, message))?;
    for (s, section) in sections.iter().enumerate() {
        let groups =
            list(section, "groups").map_err(|error| (None, format!("section {s}: {error}")))?;
        let mut keys = Keys::default();
        for (g, group) in groups.iter().enumerate() {
            let done = Group::read(&[&spec, section, group], &mut rng)
                .and_then(|group| group.play(&mut keys, &mut rng, reader));
            done.map_err(|error| (None, format!("section {s}, group {g}: {error}")))?;
        }
    }
    Ok(())
}

fn list<'a>(json: &'a Json, name: &str) -> Result<&'a [Json], String> {
    match json.get(name) {
        Some(Json::List(list)) => Ok(list),
        other => {
            let found = other.map_or("nothing", Json::kind);
            Err(format!("expected the list `{name}`, found {found}"))
        }
    }
}

/// The operations of one kind in a group.
struct Ops {
    kind: &'static str,
    left: u64,
    key: Option<Text>,
    value: Option<Text>,
    /// Which of the present keys is met.
    selection: Number,
    /// The share of the present keys that a range has.
    selectivity: Option<Number>,
    letters: Option<Letters>,
}

struct Group {
    ops: Vec<Ops>,
    /// Keys to insert in their order, the last one first, if the group sorts them.
    pool: Option<Vec<Vec<u8>>>,
}

impl Group {
    /// Reads a group, the last of `nested`; the others are what it lies in.
    fn read(nested: &[&Json; 3], rng: &mut Rng) -> Result<Group, String> {
        let group = nested[2];
        let Json::Object(fields) = group else {
            return Err(format!("expected an object, found {}", group.kind()));
        };
        let mut set = None;
        for json in nested {
            set = Letters::read(json)?.or(set);
        }
        for (name, _) in fields {
            if !KINDS.contains(&name.as_str()) && !["sorted", "character_set"].contains(&&**name) {
                return Err(format!("unknown kind `{name}`; expected {}", KINDS.join(", ")));
            }
        }
        let mut ops = Vec::new();
        for kind in KINDS {
            if let Some(json) = group.get(kind) {
                ops.push(
                    Ops::read(kind, json, set, rng).map_err(|error| format!("{kind}: {error}"))?,
                );
            }
        }
        let mut group_read = Group { ops, pool: None };
        if let Some(sorted) = group.get("sorted") {
            let number = |name: &str| {
                let json = sorted.get(name).ok_or_else(|| format!("sorted needs `{name}`"));
                json.and_then(Number::read)
            };
            group_read.sort(&number("k")?, &number("l")?, rng)?;
        }
        Ok(group_read)
    }

    /// Draws the keys of the inserts, sorts them, and swaps about `swapped` of them with others as
    /// far as `distance` away.
    fn sort(&mut self, swapped: &Number, distance: &Number, rng: &mut Rng) -> Result<(), String> {
        let inserts = self.ops.iter().find(|ops| ops.kind == "inserts");
        let inserts = inserts.ok_or("sorted needs inserts, found none")?;
        let mut pool = Vec::new();
        for _ in 0..inserts.left {
            pool.push(inserts.key(rng)?);
        }
        pool.sort_unstable_by(|left: &Vec<u8>, right| right.cmp(left));
        if let Some(last) = pool.len().checked_sub(1) {
            for _ in 0..(swapped.draw(rng) / 2.0).clamp(0.0, OPS_MAX) as u64 {
                let at = rng.below(pool.len() as u64) as usize;
                let other = (at as f64 + distance.draw(rng)).clamp(0.0, last as f64) as usize;
                pool.swap(at, other);
            }
        }
        self.pool = Some(pool);
        Ok(())
    }

    fn play(mut self, keys: &mut Keys, rng: &mut Rng, reader: &mut Reader) -> Result<(), String> {
        let total = |group: &Group| group.ops.iter().map(|ops| ops.left).sum::<u64>();
        let mut left = total(&self);
        while left > 0 && !reader.is_full() {
            // A group whose section has no keys yet starts with an insert.
            let inserts = self.ops.iter().position(|ops| ops.kind == "inserts" && ops.left > 0);
            let chosen = match (keys.is_empty(), inserts) {
                (true, Some(inserts)) => inserts,
                _ => {
                    let mut at = rng.below(left);
                    let behind = |ops: &Ops| {
                        let is_behind = at < ops.left;
                        at = at.saturating_sub(ops.left);
                        is_behind
                    };
                    self.ops.iter().position(behind).expect("some are left")
                }
            };
            self.ops[chosen].left -= 1;
            left -= 1;
            let ops = &self.ops[chosen];
            let sorted = self.pool.as_mut().filter(|_| ops.kind == "inserts").and_then(Vec::pop);
            ops.play(sorted, keys, rng, reader)
                .map_err(|error| format!("{}: {error}", ops.kind))?;
        }
        Ok(())
    }
}

impl Ops {
    fn read(
        kind: &'static str,
        json: &Json,
        set: Option<Letters>,
        rng: &mut Rng,
    ) -> Result<Ops, String> {
        let number = |name: &str| json.get(name).map(Number::read).transpose();
        let amount = number("amount")?.or(number("op_count")?);
        let amount = amount.ok_or("expected `amount` or `op_count`, found neither")?.draw(rng);
        if !(0.0..=OPS_MAX).contains(&amount) {
            return Err(format!("expected an amount from 0 to {OPS_MAX}, found {amount}"));
        }
        let mut text = |name: &str| json.get(name).map(|json| Text::read(json, rng)).transpose();
        let ops = Ops {
            kind,
            left: amount as u64,
            key: text("key")?,
            value: text("val")?,
            selection: number("selection")?.unwrap_or(Number::Uniform { min: 0.0, max: 1.0 }),
            selectivity: number("selectivity")?,
            letters: Letters::read(json)?.or(set),
        };
        let needs = [
            (kind == "inserts" || kind.starts_with("empty"), ops.key.is_none(), "key"),
            (["inserts", "updates", "merges"].contains(&kind), ops.value.is_none(), "val"),
            (kind.starts_with("range"), ops.selectivity.is_none(), "selectivity"),
        ];
        match needs.iter().find(|(needed, lacks, _)| *needed && *lacks) {
            Some((_, _, name)) => Err(format!("expected `{name}`, found none")),
            None => Ok(ops),
        }
    }

    /// Draws a key.
    fn key(&self, rng: &mut Rng) -> Result<Vec<u8>, String> {
        let mut key = Vec::new();
        self.key.as_ref().ok_or("expected `key`, found none")?.draw(self.letters, rng, &mut key);
        Ok(key)
    }

    /// Draws the length of a value.
    fn value_bytes(&self, rng: &mut Rng) -> Result<u32, String> {
        let mut value = Vec::new();
        self.value.as_ref().ok_or("expected `val`, found none")?.draw(
            self.letters,
            rng,
            &mut value,
        );
        checked_size("value", value.len() as u64)
    }

    /// Plays one operation. An insert takes the key `sorted` if there is one.
    fn play(
        &self,
        sorted: Option<Vec<u8>>,
        keys: &mut Keys,
        rng: &mut Rng,
        reader: &mut Reader,
    ) -> Result<(), String> {
        let (kind, key, size) = match self.kind {
            "inserts" => {
                let key = sorted.map_or_else(|| self.key(rng), Ok)?;
                keys.insert(key.clone());
                (TraceOpKind::Put, key, self.value_bytes(rng)?)
            }
            "empty_point_deletes" | "empty_point_queries" => {
                let mut key = self.key(rng)?;
                for _ in 0..TRIES_MAX {
                    if !keys.contains(&key) {
                        break;
                    }
                    key = self.key(rng)?;
                }
                let is_query = self.kind == "empty_point_queries";
                (if is_query { TraceOpKind::Get } else { TraceOpKind::Delete }, key, 0)
            }
            _ if keys.is_empty() => return Err("no key is left to be met".to_owned()),
            "updates" => (TraceOpKind::Put, keys.at(self, rng), self.value_bytes(rng)?),
            "merges" => (TraceOpKind::Update, keys.at(self, rng), self.value_bytes(rng)?),
            "point_queries" => (TraceOpKind::Get, keys.at(self, rng), 0),
            "point_deletes" => {
                let key = keys.at(self, rng);
                keys.remove(&key);
                (TraceOpKind::Delete, key, 0)
            }
            "range_queries" => {
                let items = keys.range_items(self, rng).max(1);
                (TraceOpKind::Scan, keys.at(self, rng), u32::try_from(items).unwrap_or(u32::MAX))
            }
            _ => {
                let (key, end) = keys.remove_range(self, rng);
                let record = Record::new(TraceOpKind::DeleteRange, key, 0);
                return reader.take(Record { end: Some(&end), ..record });
            }
        };
        reader.take(Record::new(kind, key, size))
    }
}

/// The keys that a section has inserted and not deleted.
#[derive(Default)]
struct Keys {
    /// In the order of their inserts, but for the places of deleted ones.
    all: Vec<Vec<u8>>,
    places: BTreeMap<Vec<u8>, usize>,
}

impl Keys {
    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.places.contains_key(key)
    }

    fn insert(&mut self, key: Vec<u8>) {
        if let std::collections::btree_map::Entry::Vacant(place) = self.places.entry(key) {
            self.all.push(place.key().clone());
            place.insert(self.all.len() - 1);
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let Some(place) = self.places.remove(key) else { return };
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            self.places.insert(moved.clone(), place);
        }
    }

    /// Returns the key that `ops` meets next.
    fn at(&self, ops: &Ops, rng: &mut Rng) -> Vec<u8> {
        self.all[ops.selection.place(self.all.len(), rng)].clone()
    }

    /// Returns how many keys the next range of `ops` has.
    fn range_items(&self, ops: &Ops, rng: &mut Rng) -> usize {
        let share = ops.selectivity.as_ref().map_or(0.0, |share| share.draw(rng));
        (share.clamp(0.0, 1.0) * self.all.len() as f64) as usize
    }

    /// Removes the keys of the next range of `ops`. Returns its start and its end, which is a key
    /// as well: the last key of all stays.
    fn remove_range(&mut self, ops: &Ops, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
        let last = self.all.len() - 1;
        let items = self.range_items(ops, rng).clamp(1, last.max(1));
        let start = ops.selection.place(self.all.len() - items.min(last), rng);
        let mut keys = self.places.keys().skip(start);
        let gone: Vec<Vec<u8>> = keys.by_ref().take(items).cloned().collect();
        let end = keys.next().cloned();
        // One key alone has none behind it: its range ends at the next string of its length.
        let end = end.unwrap_or_else(|| next_of_length(&gone[gone.len() - 1]));
        for key in &gone {
            self.remove(key);
        }
        (gone.into_iter().next().unwrap_or_default(), end)
    }
}

/// Returns the next larger string of the length of `key`; a longer one if there is none.
fn next_of_length(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return next;
        }
    }
    [key, b"\0"].concat()
}
