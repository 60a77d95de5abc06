//! Random legal trees. No two runs of the suite differ: the seeds are fixed.

use lsmith_spec::random;
use lsmith_tree::{
    Key, KeyRange, KnotId, Level, ProfilePoint, Reads, Run, RunId, SeqNo, Size, Slice, Table,
    TableId, Tree, TreeEdit, TreeView, apply,
};
use std::sync::Arc;

/// A stream of random numbers (splitmix64).
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    fn next(&mut self) -> u64 {
        random::next(&mut self.state)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a number of bytes up to 1 GiB. All magnitudes are equally likely, and 0 is possible.
    pub(super) fn bytes(&mut self) -> u64 {
        if self.chance(3) {
            return 0;
        }
        let limit = 1 << self.below(31);
        self.below(limit) + 1
    }
}

/// Keys of the random trees are the numbers below this.
const KEYS: u64 = 10_000;

pub(super) fn key(rank: u64) -> Key {
    Key::copy_from_slice(&rank.to_be_bytes())
}

/// Returns a table over the given keys, with some points in its profile.
pub(super) fn table(
    random: &mut Random,
    id: u64,
    range: std::ops::Range<u64>,
    bytes: u64,
) -> Table {
    let points = random.below(8);
    let mut inner: Vec<(u64, u64)> = (0..points)
        .map(|_| {
            let key = range.start + random.below(range.end - range.start);
            (key, random.below(bytes + 1))
        })
        .collect();
    inner.sort_unstable();
    inner.dedup_by_key(|(key, _)| *key);
    let mut below: Vec<u64> = inner.iter().map(|(_, bytes)| *bytes).collect();
    below.sort_unstable();
    let profile = inner.iter().zip(below);
    Table {
        id: TableId(id),
        range: KeyRange::new(key(range.start), key(range.end)),
        size: Size::of_bytes(bytes),
        seq_min: SeqNo(random.below(1000)),
        seq_max: SeqNo(1000 + random.below(1000)),
        profile: profile
            .map(|((at, _), bytes)| ProfilePoint {
                key: key(*at),
                below: Size::of_bytes(bytes),
                after: None,
            })
            .collect(),
        ..Table::default()
    }
}

/// The next names to use.
struct Names {
    run: u64,
    table: u64,
    knot: Option<KnotId>,
}

/// Returns a view of a random legal tree.
pub(super) fn view(random: &mut Random) -> TreeView {
    let mut names = Names { run: 0, table: 0, knot: None };
    let levels = (0..random.below(7)).map(|_| {
        let count = if random.chance(25) { 0 } else { random.below(6) };
        Level::new((0..count).map(|_| run(random, &mut names)).collect())
    });
    let tree = Tree::from_levels(levels.collect());
    let flushes = random.below(1 << 20);
    let mut tree = tree.with_tables(|table| with_tombstones(random, table, flushes));
    let [found, absent, scans] = [(); 3].map(|()| random.bytes());
    let past = TreeEdit {
        flushes,
        flushed: Size::of_bytes(flushes.saturating_mul(random.bytes())),
        reads: random.chance(50).then(|| Reads::default().with_memtable(found, absent, scans)),
        memo: vec![("note".into(), Some("of another policy".into()))],
        ..TreeEdit::default()
    };
    apply(&mut tree, &past).expect("adds no runs");
    for _ in 0..random.below(3) {
        seal(random, &mut tree, 0..KEYS);
    }
    // A smaller memtable would make nearly all plans of a leveled policy moves through dozens of
    // levels.
    let memtable_bytes = random.bytes().max(tree.disk_bytes() / 256).max(1);
    TreeView::new(tree, memtable_bytes)
}

/// Returns `table`, perhaps with tombstones. One of the tree's `flushes` has brought the oldest.
fn with_tombstones(random: &mut Random, table: &Arc<Table>, flushes: u64) -> Arc<Table> {
    if !random.chance(30) {
        return Arc::clone(table);
    }
    let size = Size { tombstones: 1 + random.below(9), ..table.size };
    let oldest_tombstone = random.below(flushes + 1);
    Arc::new(Table { size, oldest_tombstone, ..Table::clone(table) })
}

/// Seals a memtable of any size over some of the given keys.
pub(super) fn seal(random: &mut Random, tree: &mut Tree, keys: std::ops::Range<u64>) {
    let bytes = random.bytes();
    seal_bytes(random, tree, keys, bytes);
}

/// Seals a memtable of `bytes` over some of the given keys.
pub(super) fn seal_bytes(
    random: &mut Random,
    tree: &mut Tree,
    keys: std::ops::Range<u64>,
    bytes: u64,
) {
    let start = keys.start + random.below((keys.end - keys.start).div_ceil(4));
    let end = keys.end - random.below((keys.end - start).div_ceil(4));
    let memtable = table(random, tree.next_table().0, start..end.max(start + 1), bytes);
    let edit = TreeEdit::seal(tree.next_run(), Slice::whole(memtable));
    apply(tree, &edit).expect("the names are new");
}

/// Returns a run of one to six slices. Some slices are parts of tables. Some runs are in a knot
/// with the run before them.
fn run(random: &mut Random, names: &mut Names) -> Run {
    let count = 1 + random.below(6);
    let mut borders: Vec<u64> = (0..2 * count).map(|_| random.below(KEYS)).collect();
    borders.sort_unstable();
    let mut slices = Vec::new();
    for pair in borders.chunks_exact(2) {
        let start = pair[0];
        let end = pair[1] + 1;
        if slices.last().is_some_and(|last: &Slice| last.range().contains(&key(start))) {
            continue;
        }
        names.table += 1;
        let before = random.below(50);
        let behind = random.below(50);
        let bytes = random.bytes();
        let wider = start.saturating_sub(before)..end + behind;
        let whole = if random.chance(30) { wider } else { start..end };
        let table = Slice::whole(table(random, names.table - 1, whole, bytes));
        slices.extend(table.clip(&KeyRange::new(key(start), key(end))));
    }
    let tied = names.knot.filter(|_| random.chance(50));
    names.knot = tied.or_else(|| random.chance(5).then_some(KnotId(names.run)));
    names.run += 1;
    Run::new(RunId(names.run - 1), slices).in_knot(names.knot)
}
