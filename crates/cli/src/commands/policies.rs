//! `policies`: what there is to choose from.

use crate::output::{print, print_json};
use crate::table::table;
use lsmith_policy::{PolicyInfo, Registry};
use serde_json::{Value, json};

pub(crate) fn policies(json: bool) -> anyhow::Result<()> {
    let registry = Registry::builtin();
    let spelled = |info: &PolicyInfo| anyhow::Ok(registry.build(info.name)?.spec().to_string());
    if json {
        let policies = registry.infos().iter().map(|info| {
            let params = info.params.iter().map(|param| {
                json!({ "name": param.name, "default": param.default, "meaning": param.meaning })
            });
            anyhow::Ok(json!({
                "name": info.name,
                "spec": spelled(info)?,
                "source": info.source,
                "summary": info.summary,
                "params": params.collect::<Value>(),
            }))
        });
        return print_json(&json!({ "policies": policies.collect::<anyhow::Result<Value>>()? }));
    }
    let mut rows = Vec::new();
    for info in registry.infos() {
        rows.push(vec![spelled(info)?, info.summary.to_owned(), info.source.to_owned()]);
        for param in info.params {
            let name = format!("  {} = {}", param.name, param.default);
            rows.push(vec![name, format!("  {}", param.meaning), String::new()]);
        }
    }
    Ok(print(table(&["policy", "what it does; parameters and defaults", "source"], 3, rows))?)
}
