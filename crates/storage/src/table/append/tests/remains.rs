//! Reading on where a table is damaged.

use super::*;
use crate::format::{FOOTER_BYTES, Footer};
use crate::table::append::{AppendPart, AppendRemains, RemainsEntry, RemainsLoss};
use crate::table::{OpenFiles, TableOptions, TableWriter};
use lsmith_fuzz::dice::quick;
use std::collections::BTreeSet;

/// The newest entry of each key.
type Newest = BTreeMap<Bytes, Owned>;

fn newest(entries: &[Owned]) -> Newest {
    let mut newest = Newest::new();
    for entry in entries {
        newest.entry(entry.key.clone()).or_insert_with(|| entry.clone());
    }
    newest
}

/// A table of several batches with all special cases, and all entries that were ever in it.
struct Grown {
    bench: Bench,
    written: BTreeSet<(Bytes, Bytes)>,
    /// The names of its roots.
    roots: Vec<u64>,
}

impl Grown {
    fn new(options: TableOptions, keys: u64, batches: u64) -> Grown {
        let mut dice = Dice(keys);
        let mut bench = Bench::new(options);
        let mut written = BTreeSet::new();
        let mut roots = Vec::new();
        for batch_id in 1..=batches {
            let share = if batch_id == 1 { 90 } else { 20 };
            let picked: Vec<u64> = (0..keys).filter(|_| dice.below(100) < share).collect();
            let batch = picked.into_iter().map(|key| {
                let key = format!("apple {key:04}");
                match dice.below(10) {
                    0 | 1 => deletion(key, batch_id),
                    2 => entry(key, batch_id, b""),
                    _ => {
                        let length = 1 + dice.below(40);
                        entry(key, batch_id, dice.bytes(length))
                    }
                }
            });
            let batch: Vec<Owned> = batch.collect();
            written.extend(batch.iter().map(|entry| (entry.key.clone(), entry.value.clone())));
            let snapshots = if batch_id % 3 == 0 { vec![SeqNo(batch_id - 1)] } else { Vec::new() };
            bench.append_with(batch, &snapshots, batch_id % 2 == 0);
            roots.push(bench.root);
        }
        Grown { bench, written, roots }
    }

    fn small(codec: Codec) -> Grown {
        Grown::new(TableOptions { block_bytes: 150, codec, ..TableOptions::default() }, 60, 5)
    }

    fn remains(&self, root: Option<u64>) -> AppendRemains {
        AppendRemains::open(&self.bench.disk, path(), TABLE, root, &OpenFiles::few()).unwrap()
    }

    fn flip(&self, at: u64) {
        self.bench.disk.flip(path(), at, 1 << (at % 8)).unwrap();
    }

    fn footer(&self, root: u64) -> Footer {
        self.remains(Some(root)).footer.unwrap()
    }

    /// Asserts that `found` has nothing that was never written. Sequence numbers may be gone.
    fn check_written(&self, found: &Newest) {
        for (key, entry) in found {
            let is_known = self.written.contains(&(key.clone(), entry.value.clone()));
            assert!(is_known, "{entry:?}");
        }
    }
}

/// All that can be read of a table.
#[derive(Default)]
struct Read {
    /// Every entry of the leaves, in order.
    entries: Vec<Owned>,
    newest: Newest,
    /// The keys of `newest` that newer entries may have had.
    older: BTreeSet<Bytes>,
    losses: Vec<RemainsLoss>,
}

impl Read {
    fn all(remains: &AppendRemains) -> Read {
        let mut read = Read::default();
        let mut walk = remains.walk(&KeyRange::ALL);
        while let Some(part) = remains.next_part(&mut walk) {
            let is_lost = part.is_lost();
            let AppendPart { keys, entries, losses, .. } = part;
            assert!(entries.iter().all(|entry| keys.contains(&entry.key)));
            for entry in entries {
                read.take(entry, true);
            }
            if is_lost {
                remains.salvage(&keys).into_iter().for_each(|entry| read.take(entry, false));
            }
            read.losses.extend(losses);
        }
        if let Some(error) = remains.lost_top() {
            let found = remains.salvage(&KeyRange::ALL);
            assert!(found.iter().is_sorted_by(|left, right| left.key < right.key));
            found.into_iter().for_each(|entry| read.take(entry, false));
            read.losses.push(RemainsLoss { keys: KeyRange::ALL, only: None, error });
        }
        read
    }

    fn take(&mut self, entry: RemainsEntry, is_shown: bool) {
        let RemainsEntry { key, seq, kind, value, is_older } = entry;
        let Some(value) = value else { return };
        let entry = Owned { key: key.clone(), seq, kind, value };
        if is_shown {
            self.entries.push(entry.clone());
        }
        assert!(is_shown || is_older);
        if is_older && !self.newest.contains_key(&key) {
            self.older.insert(key.clone());
        }
        self.newest.entry(key).or_insert(entry);
    }

    /// Asserts that all differences from `expected` are in keys that are said to be lost. Returns
    /// the keys that differ.
    fn check(&self, expected: &Newest) -> Vec<Bytes> {
        let keys: BTreeSet<&Bytes> = expected.keys().chain(self.newest.keys()).collect();
        let differs = |key: &&Bytes| expected.get(*key) != self.newest.get(*key);
        let is_lost = |key: &Bytes| {
            self.losses.iter().any(|loss| {
                loss.keys.contains(key) && loss.only.as_ref().is_none_or(|only| only.contains(key))
            })
        };
        let differing: Vec<Bytes> = keys.into_iter().filter(differs).cloned().collect();
        for key in &differing {
            assert!(is_lost(key), "{key:?}: {:?}", self.losses);
        }
        for key in &self.older {
            assert!(is_lost(key), "{key:?}");
        }
        differing
    }
}

#[test]
fn whole_table_is_read_as_it_is() {
    let options = TableOptions { block_bytes: 300, ..TableOptions::default() };
    for grown in [Grown::small(Codec::Lz4), Grown::new(options, 3000, 4)] {
        for name in [None, Some(grown.bench.root)] {
            let remains = grown.remains(name);
            let read = Read::all(&remains);
            assert!(read.entries == grown.bench.model);
            assert!(remains.damage.is_empty() && read.losses.is_empty());
            let names: Vec<u64> = remains.roots().unwrap().iter().map(|root| root.end).collect();
            assert_eq!(names, grown.roots);
        }
        assert!(AppendRemains::is_append(&grown.bench.disk, path(), TABLE).unwrap());
        // A part of the keys is read from a part of the leaves.
        let remains = grown.remains(None);
        let mut walk = remains.walk(&KeyRange::new("apple 0010", "apple 0011"));
        assert_eq!(std::iter::from_fn(|| remains.next_part(&mut walk)).count(), 1);
    }
}

#[test]
fn flipped_byte_costs_what_it_leads_to() {
    for codec in [Codec::None, Codec::Lz4] {
        let grown = Grown::small(codec);
        let root = grown.bench.root;
        let expected = newest(&grown.bench.model);
        let places: Vec<Footer> = grown.roots.iter().map(|root| grown.footer(*root)).collect();
        let mut losses = 0;
        let mut differing = 0;
        for at in 0..root {
            grown.flip(at);
            let read = Read::all(&grown.remains(Some(root)));
            let differs = read.check(&expected);
            losses += usize::from(!read.losses.is_empty());
            differing += differs.len();
            grown.check_written(&read.newest);
            let is_data = places.iter().all(|it| at < it.filter.start || at >= it.index.end)
                && places.iter().any(|it| at < it.filter.start);
            for key in differs {
                let is_value = expected.get(&key).is_some_and(|it| !it.value.is_empty());
                let found = read.newest.get(&key);
                let same_value =
                    found.map(|it| &it.value) == expected.get(&key).map(|it| &it.value);
                // Data blocks have the newest value of each key whose leaf is lost.
                assert!(!is_value || same_value || is_data, "{key:?} at {at}: {found:?}");
            }
            grown.flip(at);
        }
        assert!(losses as u64 > root / 5 && (losses as u64) < root, "{losses} of {root}");
        assert!(differing > 100 && differing < 20 * losses, "{differing} keys, {losses} losses");
    }
}

#[test]
fn no_entry_is_lost_with_footer_root_block_or_filter() {
    let grown = Grown::small(Codec::None);
    let root = grown.bench.root;
    let footer = grown.footer(root);
    let start = root - FOOTER_BYTES as u64;
    for at in footer.filter.clone().chain(footer.properties.start..root) {
        grown.flip(at);
        for name in [Some(root), None] {
            let remains = grown.remains(name);
            assert_eq!(remains.damage.len(), 1, "{at}");
            let read = Read::all(&remains);
            assert!(read.losses.is_empty() && read.entries == grown.bench.model, "{at}");
        }
        grown.flip(at);
    }
    // Both at once: there is no way to the top but a search.
    grown.flip(start);
    grown.flip(footer.properties.start);
    let read = Read::all(&grown.remains(Some(root)));
    assert!(read.newest == newest(&grown.bench.model), "all nodes are there");
    assert_eq!(read.losses.len(), 1);
    assert_eq!(read.older.len(), read.newest.len());
}

#[test]
fn deletions_that_a_readable_leaf_knows_hold() {
    // All in one leaf: the first batch writes the keys, the second deletes some, the third writes
    // another, and its leaf is damaged.
    let mut bench = Bench::small();
    bench.append((0..20).map(|n| entry(format!("key {n:02}"), 1, b"old")).collect());
    bench.append((5..9).map(|n| deletion(format!("key {n:02}"), 2)).collect());
    bench.append(vec![entry("key 15", 3, b"new")]);
    let grown = Grown { roots: Vec::new(), written: BTreeSet::new(), bench };
    let top = grown.remains(None).root.unwrap().top.node;
    grown.flip(top.offset + 10);
    let read = Read::all(&grown.remains(Some(grown.bench.root)));
    assert_eq!(read.losses.len(), 1);
    let value = |key: &str| read.newest.get(key.as_bytes()).map(|entry| &entry.value[..]);
    assert_eq!((value("key 05"), value("key 08")), (None, None));
    assert_eq!((value("key 04"), value("key 15")), (Some(&b"old"[..]), Some(&b"new"[..])));
    // Without the leaf of the second batch too, its deletions are not known.
    let roots = grown.remains(None).roots().unwrap();
    grown.flip(roots[1].footer.index.start + 10);
    let read = Read::all(&grown.remains(Some(grown.bench.root)));
    let value = |key: &str| read.newest.get(key.as_bytes()).map(|entry| &entry.value[..]);
    assert_eq!((value("key 05"), value("key 15")), (Some(&b"old"[..]), Some(&b"new"[..])));
}

#[test]
fn what_lies_behind_the_named_root_does_not_come_back() {
    let mut grown = Grown::small(Codec::None);
    let root = grown.bench.root;
    let expected = newest(&grown.bench.model);
    grown.bench.append(vec![entry("apple 0001", 90, b"unnamed")]);
    let top = grown.remains(Some(root)).root.unwrap().top.node;
    grown.flip(top.offset + 3);
    let read = Read::all(&grown.remains(Some(root)));
    assert!(!read.losses.is_empty());
    read.check(&expected);
    assert!(read.newest.values().all(|entry| entry.value != b"unnamed"[..]));
    // Without a name the newest root counts.
    let read = Read::all(&grown.remains(None));
    assert_eq!(&read.newest[&b"apple 0001"[..]].value[..], b"unnamed");
}

#[test]
fn cut_file_shows_the_newest_values_that_are_left() {
    let grown = Grown::small(Codec::None);
    let root = grown.bench.root;
    let first_node = grown.footer(grown.roots[0]).index.start;
    let mut last = usize::MAX;
    for bytes in (0..root).rev().step_by(if quick() { 3 } else { 1 }) {
        grown.bench.disk.truncate(path(), bytes).unwrap();
        let read = Read::all(&grown.remains(Some(root)));
        let [loss] = &read.losses[..] else { panic!("{:?}", read.losses) };
        assert!(loss.only.is_none() && loss.keys.is_all());
        grown.check_written(&read.newest);
        // Without a name the last bytes are looked for. That takes as long again.
        if bytes % 5 == 0 {
            let without_name = Read::all(&grown.remains(None));
            assert!(without_name.newest == read.newest);
        }
        if bytes > grown.roots[0] {
            assert!(AppendRemains::is_append(&grown.bench.disk, path(), TABLE).unwrap());
            // The first batch is whole.
            assert!(read.newest.len() > 40, "{bytes}");
        }
        if bytes < first_node {
            assert!(read.newest.len() <= last, "{bytes}");
            last = read.newest.len();
        }
    }
    assert!(last == 0 || quick(), "{last}");
}

#[test]
fn table_without_footers_is_known_by_its_nodes() {
    let grown = Grown::small(Codec::None);
    for root in &grown.roots {
        grown.flip(root - 1);
    }
    assert!(AppendRemains::is_append(&grown.bench.disk, path(), TABLE).unwrap());
    let read = Read::all(&grown.remains(None));
    assert!(read.losses.is_empty(), "the last root block is found behind its nodes");
    assert!(read.entries == grown.bench.model);
    grown.flip(grown.footer_start() - 20);
    let read = Read::all(&grown.remains(None));
    assert!(read.newest == newest(&grown.bench.model));
    assert_eq!(read.losses.len(), 1);
}

impl Grown {
    fn footer_start(&self) -> u64 {
        self.bench.root - FOOTER_BYTES as u64
    }
}

#[test]
fn sorted_table_is_no_append_table() {
    let disk = MemEnv::new();
    let options = TableOptions { block_bytes: 100, ..TableOptions::default() };
    let env: Arc<dyn Env> = Arc::new(disk.clone());
    let mut writer = TableWriter::create(&env, path(), TABLE, &options).unwrap();
    let mut dice = Dice(7);
    for index in 0..500 {
        let key = format!("key {index:04}");
        // Values that may look like references.
        let length = dice.below(7);
        let value: Vec<u8> = dice.bytes(length).iter().map(|byte| byte & 31).collect();
        let entry = entry(key, 5, value);
        writer.add(entry.as_ref()).unwrap();
    }
    writer.finish().unwrap();
    assert!(!AppendRemains::is_append(&disk, path(), TABLE).unwrap());
    let bytes = disk.file_bytes(path()).unwrap();
    disk.flip(path(), bytes - 1, 1).unwrap();
    assert!(!AppendRemains::is_append(&disk, path(), TABLE).unwrap());
}
