//! `policies`: the list of all policies.

use crate::output::{print, print_json};
use crate::specs;
use crate::table::prose;
use lsmith_policy::PolicyInfo;
use serde_json::{Value, json};

pub(crate) fn policies(json: bool) -> anyhow::Result<()> {
    let registry = specs::registry();
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
    let mut row = |cells: [&str; 3]| rows.push(cells.map(str::to_owned).to_vec());
    for info in registry.infos() {
        row([info.name, "", &format!("{} ({})", info.summary, info.source)]);
        for param in info.params {
            row([&format!("  {}", param.name), param.default, param.meaning]);
        }
    }
    Ok(print(prose(&["policy", "default", "what it does, and its parameters"], rows))?)
}
