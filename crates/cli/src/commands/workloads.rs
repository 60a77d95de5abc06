//! `workloads`: the list of all kinds of workloads.

use crate::output::{Output, print_json};
use crate::table::prose;
use lsmith_workload::{Workload, WorkloadInfo, WorkloadParam};
use serde_json::{Value, json};

pub(crate) fn workloads(json: bool) -> anyhow::Result<()> {
    if json {
        let workloads: Value = Workload::INFOS.iter().map(fields).collect();
        let common: Value = WorkloadInfo::COMMON.iter().map(param_fields).collect();
        return print_json(&json!({
            "workloads": workloads,
            "common": common,
            "trace_format": Workload::TRACE_FORMAT,
        }));
    }
    let mut rows = Vec::new();
    let mut row = |cells: [&str; 4]| rows.push(cells.map(str::to_owned).to_vec());
    let param = |param: &WorkloadParam| {
        let default = param.default.unwrap_or("").to_owned();
        (format!("  {}", param.name), param.unit.name(), default, param.meaning)
    };
    for info in Workload::INFOS {
        let source = match info.source {
            "" => String::new(),
            source => format!(" ({source})"),
        };
        row([info.name, "", "", &format!("{}{source}", info.summary)]);
        if let Some(argument) = info.argument {
            row(["  first, unnamed", "", "", argument]);
        }
        for (name, unit, default, meaning) in info.params.iter().map(param) {
            row([&name, unit, &default, meaning]);
        }
        row(["  for example", "", "", info.example]);
    }
    row(["every workload", "", "", "these parameters as well"]);
    for (name, unit, default, meaning) in WorkloadInfo::COMMON.iter().map(param) {
        row([&name, unit, &default, meaning]);
    }
    let mut output = Output::new();
    output
        .line(prose(&["workload", "unit", "default", "what it does, and its parameters"], rows))?;
    output.line(UNITS)?;
    output.line(format_args!("\nThe file of a trace:\n\n{}", Workload::TRACE_FORMAT.trim_end()))?;
    Ok(output.finish()?)
}

const UNITS: &str = "
count: 5, 100k, 2M, 1G. bytes: 100B, 64KiB, 4MiB, 1GB. number: 0.5.
A parameter without a default has no effect unless it is given, or says what it is otherwise.";

fn fields(info: &WorkloadInfo) -> Value {
    json!({
        "name": info.name,
        "summary": info.summary,
        "source": info.source,
        "argument": info.argument,
        "params": info.params.iter().map(param_fields).collect::<Value>(),
        "example": info.example,
    })
}

fn param_fields(param: &WorkloadParam) -> Value {
    json!({
        "name": param.name,
        "unit": param.unit.name(),
        "default": param.default,
        "meaning": param.meaning,
    })
}
