//! `laws`: checks a policy against the laws of merge policies.

use crate::args::LawsArgs;
use crate::bars::Bars;
use crate::output::{print, print_json};
use crate::specs;
use anyhow::bail;
use lsmith_lab::Progress;
use lsmith_policy::laws;
use serde_json::json;
use std::panic::AssertUnwindSafe;

pub(crate) fn laws(args: &LawsArgs, json: bool) -> anyhow::Result<()> {
    let policy = specs::policy(&args.policy)?;
    let spec = policy.spec().to_string();
    let bars = Bars::new();
    bars.begin(&format!("{spec}: laws"), 0);
    // The suite catches panics of the policy. Each tried view would print one.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let checked = std::panic::catch_unwind(AssertUnwindSafe(|| laws::check(policy.as_ref())));
    std::panic::set_hook(hook);
    drop(bars);
    let Ok(checked) = checked else { bail!("{spec} panics where the laws do not ask it to plan") };
    let law = checked.as_ref().err().map(|error| format!("{:?}", error.law()));
    if json {
        print_json(&json!({
            "policy": spec,
            "broken": law,
            "message": checked.as_ref().err().map(ToString::to_string),
        }))?;
    } else if let Err(error) = &checked {
        print(error)?;
    } else {
        print(format_args!("{spec} keeps all laws"))?;
    }
    match law {
        Some(law) => bail!("{spec} breaks the law `{law}`"),
        None => Ok(()),
    }
}
