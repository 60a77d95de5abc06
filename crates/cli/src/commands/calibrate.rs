//! `calibrate`: measures what work costs on this machine.

use crate::args::CalibrateArgs;
use crate::bars::Bars;
use crate::output::{print, print_json};
use anyhow::Context;
use lsmith_lab::{calibrate as measured, spec_of_machine};
use serde::Serialize;

#[derive(Serialize)]
struct Calibrated {
    machine: String,
}

pub(crate) fn calibrate(args: &CalibrateArgs, json: bool) -> anyhow::Result<()> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let bars = Bars::new();
    let machine = spec_of_machine(&measured(&dir, &bars)?).to_string();
    drop(bars);
    if let Some(file) = &args.out {
        let cannot_write = || format!("cannot write {}", file.display());
        std::fs::write(file, format!("{machine}\n")).with_context(cannot_write)?;
    }
    if json {
        return print_json(&Calibrated { machine });
    }
    if args.out.is_none() {
        print(machine)?;
    }
    Ok(())
}
