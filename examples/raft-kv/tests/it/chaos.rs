//! Nodes die and links break under load, and the history must stay linearizable.

use crate::cluster::Cluster;
use crate::history::{self, Op, What};
use crate::load::{History, KEYS, Load};
use crate::proxy::Mode;
use std::env;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The most seconds that a run may be asked to take.
const SECONDS_MAX: u64 = 3600;

/// Returns the number in an environment variable, if it is set.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect(name))
}

/// What was done to the cluster.
#[derive(Debug, Default)]
struct Done {
    kills: usize,
    cuts: usize,
    /// The nodes that led, as far as seen.
    leaders: Vec<u64>,
}

/// Does something bad to the cluster, most often to the node that leads.
async fn trouble(cluster: &mut Cluster, random: &mut fastrand::Rng, done: &mut Done) {
    let leader = done.note_leader(cluster).await;
    let node = if random.u32(..4) > 0 { leader } else { random.u64(1..4) };
    let other = node % 3 + 1;
    match random.u32(..8) {
        0 | 1 => done.kill(cluster, &[node]),
        2 => done.kill(cluster, &[node, other]),
        // What was confirmed must be in their files.
        3 => done.kill(cluster, &[1, 2, 3]),
        4 | 5 => done.cut_off(cluster, node, Mode::Cut),
        6 => done.cut_off(cluster, node, Mode::NoReplies),
        _ => {
            cluster.set_link(node, other, Mode::Cut);
            done.cuts += 1;
        }
    }
}

impl Done {
    fn kill(&mut self, cluster: &mut Cluster, ids: &[u64]) {
        ids.iter().for_each(|id| cluster.kill(*id));
        self.kills += ids.len();
    }

    async fn note_leader(&mut self, cluster: &Cluster) -> u64 {
        let leader = cluster.leader().await;
        if self.leaders.last() != Some(&leader) {
            self.leaders.push(leader);
        }
        leader
    }

    fn cut_off(&mut self, cluster: &Cluster, id: u64, mode: Mode) {
        cluster.set_links(id, mode);
        self.cuts += 4;
    }
}

/// The longest time for which trouble lasts if hardly an operation ends. Others may lead after one
/// second.
const TROUBLE_MAX: Duration = Duration::from_millis(2500);

/// Makes trouble until `seconds` have passed. Each lasts for some operations of the load. The next
/// one may come on top of the last one.
async fn make_trouble(
    cluster: &mut Cluster,
    history: &History,
    random: &mut fastrand::Rng,
    seconds: u64,
) -> Done {
    let mut done = Done::default();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        trouble(cluster, random, &mut done).await;
        let _ = timeout(TROUBLE_MAX, history.more(random.u64(100..1500))).await;
        if random.u32(..3) > 0 {
            cluster.heal();
        }
        cluster.spawn_missing();
        let _ = timeout(TROUBLE_MAX, history.more(random.u64(..500))).await;
    }
    cluster.heal();
    done
}

/// Reads all keys through the leader.
async fn read_all(cluster: &Cluster, history: &History) {
    let mut client = cluster.client();
    for key in 0..KEYS {
        let start = Instant::now();
        while !history.read(&mut client, &key.to_string()).await {
            assert!(start.elapsed() < Duration::from_secs(90), "key {key} cannot be read");
        }
    }
}

/// Waits until all nodes have applied the same entries, and compares what they hold.
async fn compare(cluster: &Cluster) {
    for key in (0..KEYS).map(|key| key.to_string()) {
        cluster
            .wait(&format!("agreement on key {key}"), async |_| {
                let first = cluster.stale(1, &key).await;
                let same =
                    first == cluster.stale(2, &key).await && first == cluster.stale(3, &key).await;
                same.then_some(())
            })
            .await;
    }
}

fn print(seed: u64, seconds: u64, done: &Done, ops: &[Op]) {
    let writes = ops.iter().filter(|op| matches!(op.what, What::Write(_))).count();
    let unknown = ops.iter().filter(|op| op.end == u64::MAX).count();
    println!(
        "seed {seed}, {seconds} s: {writes} writes ({unknown} with unknown outcome), {} reads, \
         {} kills, {} cuts, leaders {:?}",
        ops.len() - writes,
        done.kills,
        done.cuts,
        done.leaders
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_is_lost_or_reordered_while_nodes_die_and_links_break() {
    let seconds = number("RAFT_KV_SECONDS").unwrap_or(30).min(SECONDS_MAX);
    let seed = number("RAFT_KV_SEED").unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cluster = Cluster::start(100).await;
    let history = History::new();
    let load = Load::start(&cluster, &history, seed);
    let done = make_trouble(&mut cluster, &history, &mut random, seconds).await;
    load.stop().await;
    read_all(&cluster, &history).await;
    // The same once more from what is on disk.
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.spawn_missing();
    read_all(&cluster, &history).await;
    compare(&cluster).await;

    let ops = history.ops();
    let leader = cluster.leader().await;
    let status = cluster.status(leader).await;
    print(seed, seconds, &done, &ops);
    history::check(&ops).unwrap();
    assert!(done.leaders.len() > 2, "too few nodes have led: {:?}", done.leaders);
    assert!(done.kills > 0 && done.cuts > 0 && ops.len() as u64 > seconds);
    assert!(status.purged.is_some(), "no log was purged: {status:?}");
}
