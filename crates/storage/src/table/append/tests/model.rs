//! Many batches against plain maps, with snapshots, reopened at each root.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Write {
    key: u64,
    kind: u8,
    value_bytes: usize,
}

/// The kinds of keys of one test.
#[derive(Clone, Copy, Debug)]
struct Keys {
    count: u64,
    bytes: usize,
}

impl Keys {
    fn key(self, index: u64) -> Vec<u8> {
        let mut key = vec![b'k'; self.bytes];
        key.extend_from_slice(&(index % self.count).to_be_bytes()[5..]);
        key
    }
}

fn write() -> impl Strategy<Value = Write> {
    let bytes = prop_oneof![8 => 0..60usize, 1 => 200..400usize, 1 => 4000..9000usize];
    (any::<u64>(), 0..4u8, bytes).prop_map(|(key, kind, value_bytes)| Write {
        key,
        kind,
        value_bytes,
    })
}

fn keys() -> impl Strategy<Value = Keys> {
    prop_oneof![
        Just(Keys { count: 12, bytes: 0 }),
        Just(Keys { count: 400, bytes: 3 }),
        Just(Keys { count: 60, bytes: 900 }),
        Just(Keys { count: 9, bytes: 5000 }),
    ]
}

/// The history of all writes, as plain as possible.
#[derive(Default)]
struct History(Vec<Owned>);

impl History {
    fn latest(&self, key: &[u8], seq: SeqNo) -> Option<&Owned> {
        let seen = self.0.iter().filter(|entry| entry.key == key && entry.seq <= seq);
        seen.max_by_key(|entry| entry.seq)
    }

    /// Returns the next write to a key: insert and remove only where they are allowed.
    fn write(&mut self, key: Vec<u8>, kind: u8, value: Vec<u8>) {
        let seq = self.0.len() as u64 + 1;
        let last = self.latest(&key, SeqNo::MAX).map(|entry| entry.kind);
        let kind = match (kind, last) {
            (2, None | Some(EntryKind::Delete | EntryKind::Remove)) => EntryKind::Insert,
            (3, Some(EntryKind::Insert)) => EntryKind::Remove,
            (1, _) => EntryKind::Delete,
            _ => EntryKind::Put,
        };
        self.0.push(entry(key, seq, value).with(kind));
    }

    fn visible(&self, key: &[u8], seq: SeqNo) -> Option<&Bytes> {
        let latest = self.latest(key, seq).filter(|entry| !entry.kind.is_tombstone());
        latest.map(|entry| &entry.value)
    }
}

fn options() -> impl Strategy<Value = TableOptions> {
    let codec = prop_oneof![Just(Codec::None), Just(Codec::Lz4)];
    let prefix_bytes = prop_oneof![Just(0), Just(2), Just(3), Just(5)];
    (codec, 100..5000usize, 0..12u8, prefix_bytes).prop_map(
        |(codec, block_bytes, filter_bits_per_key, prefix_bytes)| TableOptions {
            block_bytes,
            filter_bits_per_key,
            prefix_bytes,
            codec,
            ..TableOptions::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn batches_are_as_merges_of_their_keys(
        keys in keys(),
        batches in vec((vec(write(), 1..120), any::<bool>(), any::<bool>()), 1..8),
        options in options(),
    ) {
        let mut bench = Bench::new(options);
        let mut history = History::default();
        let mut snapshots: Vec<SeqNo> = Vec::new();
        let mut roots = Vec::new();
        for (writes, takes_snapshot, drops_snapshot) in batches {
            let from = history.0.len();
            for write in writes {
                let value = vec![write.key as u8; write.value_bytes];
                history.write(keys.key(write.key), write.kind, value);
                if takes_snapshot && history.0.len().is_multiple_of(17) {
                    snapshots.insert(0, SeqNo(history.0.len() as u64));
                }
            }
            if drops_snapshot {
                snapshots.pop();
            }
            let mut batch = history.0[from..].to_vec();
            crate::read::vec_cursor::sort(&mut batch);
            bench.append_with(batch, &snapshots, true);
            bench.check();
            let table = bench.open();
            for seq in snapshots.iter().copied().chain([SeqNo::MAX]) {
                for index in 0..keys.count.min(60) {
                    let key = keys.key(index);
                    let found = get(&table, &key, seq).unwrap();
                    let found = found.filter(|entry| !entry.kind.is_tombstone());
                    let right = history.visible(&key, seq).cloned();
                    prop_assert_eq!(found.map(|entry| entry.value), right);
                }
            }
            roots.push((bench.root, bench.model.clone()));
        }
        // Old roots still show what they showed.
        for (root, model) in roots {
            check_table(&bench.open_at(root, true).unwrap(), &model);
        }
    }
}
