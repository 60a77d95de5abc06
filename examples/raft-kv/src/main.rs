//! The command `raft-kv`: a node, a cluster of three on one machine, and a client.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a command has files and prints what it was asked for"
)]

mod cluster;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use raft_kv::Command as Write;
use raft_kv::client::Client;
use raft_kv::network::{Peers, Request};
use raft_kv::node::{self, NodeOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// A replicated key-value service: openraft over lsmith.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts, looks at or stops three nodes on this machine.
    #[command(subcommand)]
    Cluster(Cluster),
    /// Writes to a cluster, or reads from it.
    Client {
        /// The directory that the cluster was started with.
        dir: PathBuf,
        #[command(subcommand)]
        operation: Operation,
    },
    /// Runs one node until it is stopped.
    Node(NodeArgs),
}

#[derive(Debug, Subcommand)]
enum Cluster {
    /// Starts three nodes with their files in DIR, and waits until one leads.
    Start {
        /// The directory, which is made if it does not exist.
        dir: PathBuf,
        /// The port of the first node. The others have the next ones.
        #[arg(long, default_value_t = 7101)]
        port: u16,
    },
    /// Prints how each node is.
    Status {
        /// The directory.
        dir: PathBuf,
    },
    /// Stops all nodes.
    Stop {
        /// The directory.
        dir: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Gives KEY the value VALUE.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// Removes KEY.
    Delete {
        /// The key.
        key: String,
    },
    /// Prints the value of KEY.
    Get {
        /// The key.
        key: String,
        /// Asks this node, which answers with what it has, however old that is.
        #[arg(long, value_name = "NODE")]
        stale: Option<u64>,
    },
}

#[derive(Debug, clap::Args)]
struct NodeArgs {
    /// The name of the cluster, which no other one has.
    #[arg(long)]
    cluster: String,
    /// The number of the node.
    #[arg(long)]
    id: u64,
    /// Where its files are.
    #[arg(long)]
    dir: PathBuf,
    /// The address that it listens at.
    #[arg(long)]
    listen: String,
    /// Reaches node ID at ADDRESS, whatever the cluster says.
    #[arg(long = "route", value_name = "ID=ADDRESS", value_parser = route)]
    routes: Vec<(u64, String)>,
    /// The time between signs of life of the leader, in milliseconds.
    #[arg(long, default_value_t = 100)]
    heartbeat_ms: u64,
    /// The number of log entries after which a snapshot is made.
    #[arg(long, default_value_t = 5000)]
    snapshot_every: u64,
}

fn route(text: &str) -> Result<(u64, String)> {
    let (id, address) = text.split_once('=').context("expected ID=ADDRESS")?;
    Ok((id.parse()?, address.to_string()))
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Cluster(Cluster::Start { dir, port }) => cluster::start(&dir, port).await,
        Command::Cluster(Cluster::Status { dir }) => cluster::status(&dir).await,
        Command::Cluster(Cluster::Stop { dir }) => cluster::stop(&dir).await,
        Command::Client { dir, operation } => client(&dir, operation).await,
        Command::Node(args) => {
            let options = NodeOptions {
                id: args.id,
                dir: args.dir,
                listen: args.listen,
                peers: Peers { cluster: args.cluster, routes: args.routes.into_iter().collect() },
                heartbeat: Duration::from_millis(args.heartbeat_ms),
                snapshot_every: args.snapshot_every,
            };
            // Whoever has started this process can wait for the line.
            let listens = || println!("node {} listens at {}", options.id, options.listen);
            node::run(&options, listens).await
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn client(dir: &Path, operation: Operation) -> Result<()> {
    let mut client = Client::new(cluster::directory(dir)?, Duration::from_secs(10));
    match operation {
        Operation::Put { key, value } => client.write(Write::Put { key, value }).await?,
        Operation::Delete { key } => client.write(Write::Delete { key }).await?,
        Operation::Get { key, stale } => {
            let value = match stale {
                None => client.read(&key).await?,
                Some(id) => {
                    client.ask(id, &Request::Read { key: key.clone(), stale: true }).await?
                }
            };
            println!("{}", value.with_context(|| format!("there is no key {key}"))?);
        }
    }
    Ok(())
}
