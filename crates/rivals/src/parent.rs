//! The turns: every store runs every chain of phases, one after another, several times over.

use crate::args::Args;
use crate::data::KEY_BYTES;
use crate::limit::Group;
use crate::phases::{self, Chain};
use crate::report::{self, Report, Row};
use crate::stores::{self, Contender};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs everything that `args` asks for and prints the result.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.phases == "list" {
        writeln!(std::io::stdout(), "{}", phases::names_all().join("\n"))?;
        return Ok(());
    }
    if args.stores == "list" {
        write!(std::io::stdout(), "{}", stores::list())?;
        return Ok(());
    }
    let contenders = args.contenders()?;
    let chains = phases::chains(&args.phases()?);
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&base).with_context(|| base.display().to_string())?;
    let mut report = Report::new(args, &contenders);
    eprint!("{}", report.preface());
    for turn in 0..args.repeat.max(1) {
        for chain in &chains {
            for place in 0..contenders.len() {
                // Each turn begins with another store.
                let contender = &contenders[(place + turn as usize) % contenders.len()];
                eprintln!("turn {} of {}: {}", turn + 1, args.repeat.max(1), contender.label());
                report.runs.extend(child(args, contender, chain, &base)?);
            }
        }
    }
    let out = std::io::stdout().lock();
    match args.json {
        true => report.write_json(out),
        false => report.write_tables(out),
    }
}

/// Runs `chain` on a fresh store in a process of its own.
fn child(args: &Args, contender: &Contender, chain: &Chain, base: &Path) -> Result<Vec<Row>> {
    let dir = tempfile::Builder::new().prefix("lsmith-rivals-").tempdir_in(base)?;
    let first = &chain.phases[0];
    let names: Vec<&str> = chain.phases.iter().map(|phase| phase.name.as_str()).collect();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", &contender.label(), "--phases", &names.join(",")]);
    command.arg("--dir").arg(dir.path()).args(["--ops", &args.ops.to_string()]);
    command.args(["--value", &args.value.to_string(), "--threads", &args.threads.to_string()]);
    let value_bytes = first.value_bytes.unwrap_or(args.value);
    let data_bytes = first.keys(args.ops) * (KEY_BYTES + value_bytes) as u64;
    let memory_bytes = data_bytes / args.cold;
    let group = if first.cold { Some(Group::new(memory_bytes)?) } else { None };
    if let Some(group) = &group {
        command.arg("--door").arg(group.door()).args(["--memory", &memory_bytes.to_string()]);
    }
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let Some(out) = process.stdout.take() else { bail!("a child without output") };
    let mut rows = Vec::new();
    for line in BufReader::new(out).lines() {
        let row: Row = serde_json::from_str(&line?)?;
        eprintln!("  {}", report::line(&row));
        rows.push(row);
    }
    let status = process.wait()?;
    ensure!(status.success(), "{} failed in {}: {status}", contender.label(), names.join(","));
    Ok(rows)
}
