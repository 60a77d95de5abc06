//! Three nodes on one machine. The file `cluster.json` has its name and their
//! addresses.

use anyhow::{Context, Result, bail};
use raft_kv::client::Client;
use raft_kv::network::{Directory, Request, Status};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::sleep;

/// The time that a cluster has to elect a leader.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the cluster in `dir`.
pub(crate) fn directory(dir: &Path) -> Result<Directory> {
    let file = dir.join("cluster.json");
    let text = fs::read_to_string(&file)
        .with_context(|| format!("{}: was a cluster started here?", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn client(dir: &Path) -> Result<Client> {
    Ok(Client::new(directory(dir)?, Duration::from_secs(1)))
}

/// Starts the nodes, out of three, that do not run, and waits until one leads.
pub(crate) async fn start(dir: &Path, port: u16) -> Result<()> {
    fs::create_dir_all(dir)?;
    if !dir.join("cluster.json").exists() {
        let address = |id: u16| (u64::from(id), format!("127.0.0.1:{}", port + id - 1));
        // No other cluster was made here, at this port, at this time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let cluster = format!("{}-{port}-{now}", dir.display());
        let made = Directory { cluster, nodes: (1..=3).map(address).collect() };
        fs::write(dir.join("cluster.json"), serde_json::to_string_pretty(&made)?)?;
    }
    let directory = directory(dir)?;
    let mut client = client(dir)?;
    for id in directory.nodes.keys() {
        if client.ask::<Status>(*id, &Request::Status).await.is_err() {
            spawn(dir, &directory, *id)?;
            println!("node {id} starts at {}", directory.nodes[id]);
        }
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let first: Result<Status, _> = client.ask(1, &Request::Status).await;
        match first {
            Ok(Status { leader: Some(leader), .. }) => {
                println!("node {leader} leads");
                return Ok(());
            }
            // A cluster that exists refuses to be made again.
            Ok(Status { applied: None, .. }) => {
                client.ask::<()>(1, &directory.initialize()).await.ok();
            }
            _ => {}
        }
        sleep(Duration::from_millis(100)).await;
    }
    bail!("no node leads after {PATIENCE:?}; see {}/*/output", dir.display())
}

/// Starts a process that goes on when this one has ended.
fn spawn(dir: &Path, directory: &Directory, id: u64) -> Result<()> {
    let dir = dir.join(id.to_string());
    fs::create_dir_all(&dir)?;
    let output = File::create(dir.join("output"))?;
    Command::new(std::env::current_exe()?)
        .args(["node", "--cluster", &directory.cluster, "--id", &id.to_string()])
        .args(["--listen", &directory.nodes[&id], "--dir"])
        .arg(&dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()?;
    Ok(())
}

/// Prints how each node is.
pub(crate) async fn status(dir: &Path) -> Result<()> {
    let number = |index: Option<u64>| index.map_or("-".to_string(), |index| index.to_string());
    println!("node  leader  term  applied  snapshot  purged");
    for id in directory(dir)?.nodes.into_keys() {
        match client(dir)?.ask::<Status>(id, &Request::Status).await {
            Ok(Status { leader, term, applied, snapshot, purged, .. }) => println!(
                "{id:<4}  {:<6}  {term:<4}  {:<7}  {:<8}  {}",
                number(leader),
                number(applied),
                number(snapshot),
                number(purged)
            ),
            Err(error) => println!("{id:<4}  {error}"),
        }
    }
    Ok(())
}

/// Stops all nodes that run.
pub(crate) async fn stop(dir: &Path) -> Result<()> {
    for id in directory(dir)?.nodes.into_keys() {
        match client(dir)?.ask::<()>(id, &Request::Stop).await {
            Ok(()) => println!("node {id} stops"),
            Err(error) => println!("node {id}: {error}"),
        }
    }
    Ok(())
}
