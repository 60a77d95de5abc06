//! Tables that arrive with numbers of their own.

use crate::Feature::Operator;
use crate::oracle::{Key, Version, What};
use crate::run::Run;
use lsmith::env::Env;
use lsmith::{IngestOptions, SeqNo, TableWriter, TableWriterOptions};
use std::collections::BTreeMap;
use std::path::Path;

impl Run {
    /// Ingests a table whose entries have numbers below, among and above the store's numbers; often
    /// a number that something else has.
    pub(crate) fn arrive(&mut self) {
        let id = self.any_space();
        let mut entries: BTreeMap<Key, (u64, What)> = BTreeMap::new();
        let last = self.oracle.last;
        // The store chooses the order of the writes of a transaction.
        let unordered = self.oracle.batches.iter().filter(|batch| batch.changes.is_none());
        let unordered: Vec<_> = unordered.map(|batch| batch.first..batch.last).collect();
        let range_deletes: Vec<u64> =
            self.oracle.space(id).range_deletes.iter().map(|one| one.number).collect();
        // Often the newest entry of a table has the number of a range delete.
        let most = (!range_deletes.is_empty() && self.dice.chance(50))
            .then(|| *self.dice.pick(&range_deletes));
        for _ in 0..1 + self.dice.below(6) {
            let key = self.key();
            let number = match (self.dice.below(4), most) {
                (0 | 1, Some(most)) => most,
                (_, Some(most)) => 1 + self.dice.below(most as usize) as u64,
                (0, None) if !range_deletes.is_empty() => *self.dice.pick(&range_deletes),
                (0 | 1, None) => last + 1 + self.dice.below(20) as u64,
                (_, None) => 1 + self.dice.below(last.max(1) as usize) as u64,
            };
            let what = match self.dice.below(5) {
                0 => What::Delete,
                1 if self.has(Operator) => What::Combine(self.value()),
                _ => What::Put(self.value(), None),
            };
            let space = self.oracle.space(id);
            let known = space.versions.get(&key);
            let is_free =
                known.is_none_or(|known| known.iter().all(|known| known.number != number));
            let is_certain = space.renumbered.as_ref().is_none_or(|range| !range.contains(&number))
                && unordered.iter().all(|numbers| !numbers.contains(&number));
            if is_free && is_certain {
                entries.insert(key, (number, what));
            }
        }
        if !entries.is_empty() {
            self.ingest(id, entries);
        }
    }

    fn ingest(&mut self, id: u64, entries: BTreeMap<Key, (u64, What)>) {
        let env = self.files();
        let operator = self.has(Operator).then(|| "append".to_string());
        let options = TableWriterOptions { env, operator, ..TableWriterOptions::default() };
        // Power loss may have brought back one that was removed.
        let _none = self.env.remove_file(Path::new("/outside"));
        let mut writer = TableWriter::create_with("/outside", &options).unwrap();
        for (key, (number, what)) in &entries {
            match what {
                What::Put(value, _) => writer.put_at(key, value, SeqNo(*number)),
                What::Delete => writer.delete_at(key, SeqNo(*number)),
                What::Combine(operand) => writer.combine_at(key, operand, SeqNo(*number)),
            }
            .unwrap();
        }
        writer.finish().unwrap();
        let before = self.last();
        let space = self.space(id);
        let link = self.dice.chance(50);
        let arrived =
            self.store().ingest(&space, &["/outside"], &IngestOptions::default().link(link));
        let _linked = self.env.remove_file(Path::new("/outside"));
        let last = self.last();
        if let Err(error) = arrived {
            let error = error.to_string();
            let known = ["could come back", "has another entry with number"];
            assert!(known.iter().any(|known| error.contains(known)), "{error}");
            if last > before {
                self.oracle.note_load(last);
            }
            return;
        }
        self.oracle.note_load(last);
        self.oracle.synced = last;
        let space = self.oracle.space(id);
        space.upheavals.push(last);
        for (key, (number, what)) in entries {
            space.add(&key, Version { number, since: last, what });
        }
    }
}
