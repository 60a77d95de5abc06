//! Single outages, and what must come of them.

use crate::cluster::Cluster;
use crate::history;
use crate::load::History;
use crate::proxy::Mode;
use raft_kv::client::{Client, ClientError};
use raft_kv::network::{Request, Status};
use std::time::{Duration, Instant};

/// Writes until a write is confirmed.
async fn write(cluster: &Cluster, history: &History, key: &str, value: &str) {
    let mut tries = 0;
    cluster
        .wait("confirmed write", async |client| {
            tries += 1;
            let value = format!("{value} at try {tries}");
            history.write(client, key, &value).await.then_some(())
        })
        .await;
}

/// The checker would find a service that answers reads with what a node has.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_cut_off_does_not_answer_with_old_values() {
    let cluster = Cluster::start(1000).await;
    let history = History::new();
    write(&cluster, &history, "a", "one").await;
    let old = cluster.leader().await;
    cluster.set_links(old, Mode::Cut);
    let others: Vec<u64> = (1..=3).filter(|id| *id != old).collect();
    let new = cluster.leader_among(&others).await;
    assert_ne!(new, old);
    write(&cluster, &history, "a", "two").await;

    // The old leader does not know of it, and must not answer.
    let mut client = cluster.client();
    let read = |stale| Request::Read { key: "a".to_string(), stale };
    client.ask::<Option<String>>(old, &read(false)).await.unwrap_err();
    assert!(history.read(&mut cluster.client(), "a").await);
    history::check(&history.ops()).unwrap();

    // If it does, by request, the history says so.
    let start = Instant::now();
    let value: Option<String> = client.ask(old, &read(true)).await.unwrap();
    history.note_read("a", value, start);
    history::check(&history.ops()).unwrap_err();
}

/// Waits until node `id` has what the leader says, for all of the first `count` keys.
async fn catch_up(cluster: &Cluster, id: u64, count: u32) {
    let mut client = cluster.client();
    for key in (0..count).map(|key| key.to_string()) {
        let last = cluster.wait("read", async |_| client.read(&key).await.ok()).await;
        assert!(last.is_some(), "key {key}");
        let what = format!("value {last:?} of key {key} at node {id}");
        let request = Request::Read { key, stale: true };
        cluster
            .wait(&what, async |client| {
                let value: Option<String> = client.ask(id, &request).await.ok()?;
                (value == last).then_some(())
            })
            .await;
    }
}

/// A node may listen where one of another cluster was: it must not take its messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_refuses_calls_for_another_cluster_or_node() {
    let cluster = Cluster::start(1000).await;
    let mut wrong = cluster.directory.clone();
    wrong.cluster.push('x');
    let mut swapped = cluster.directory.clone();
    let address = swapped.nodes[&2].clone();
    swapped.nodes.insert(1, address);
    for directory in [wrong, swapped] {
        let mut client = Client::new(directory, Duration::from_secs(30));
        let refused = client.ask::<Status>(1, &Request::Status).await.unwrap_err();
        assert!(matches!(&refused, ClientError::NotDone(why) if why.starts_with("this is node")));
    }
}

/// The log that a node has missed is gone, so it gets a snapshot, and lives on with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_is_sent_a_snapshot() {
    let mut cluster = Cluster::start(40).await;
    let history = History::new();
    let away = cluster.leader().await % 3 + 1;
    let others: Vec<u64> = (1..=3).filter(|id| *id != away).collect();
    let had = cluster.status(away).await.applied;
    cluster.kill(away);
    for round in 0..200 {
        write(&cluster, &history, &(round % 20).to_string(), &round.to_string()).await;
    }
    for id in others {
        cluster
            .wait("purge of the log", async |client| {
                let status: Status = client.ask(id, &Request::Status).await.ok()?;
                (status.purged > had).then_some(())
            })
            .await;
    }
    for _life in 0..2 {
        cluster.spawn(away);
        catch_up(&cluster, away, 20).await;
        // No log reaches from what it had to what it has.
        assert!(cluster.status(away).await.purged > had);
        cluster.kill(away);
    }
}
