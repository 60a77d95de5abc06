//! Specs of any kind: refused, or built and spelled such that they are built again the same.

use lsmith_fuzz::{Choices, change_text, fuzz, peak_bytes};
use lsmith_policy::Registry;

const VALUES: [&str; 28] = [
    "0",
    "1",
    "2",
    "3",
    "64",
    "65",
    "1000",
    "1.5",
    "0.01",
    "100",
    "1e9",
    "-1",
    "nan",
    "inf",
    "1B",
    "4MiB",
    "1GiB",
    "always",
    "never",
    "true",
    "false",
    "size",
    "golden",
    "oldest",
    "0.3/0.5",
    "/",
    "18446744073709551615",
    "18446744073709551616",
];

/// A spec with parameters that there are, and values that there are or that are another's.
fn spec(registry: &Registry, choices: &mut Choices<'_>) -> String {
    let info = choices.pick(registry.infos());
    let mut params = Vec::new();
    for param in info.params {
        if choices.chance(50) {
            let own = choices.chance(30);
            let value = if own { param.default } else { choices.pick(&VALUES) };
            params.push(format!("{}={value}", param.name));
        }
    }
    format!("{}({})", info.name, params.join(", "))
}

#[test]
fn fuzz_policy_specs() {
    fuzz!(100_000, |choices| {
        let registry = Registry::builtin();
        let text = spec(&registry, choices);
        let text = if choices.chance(30) { change_text(&text, &VALUES, choices) } else { text };
        let (built, peak) = peak_bytes(|| registry.build(&text));
        assert!(peak < 1 << 16, "{peak} bytes for {text}");
        if let Ok(policy) = built {
            let spelled = policy.spec().to_string();
            let again = registry.build(&spelled);
            let again = again.unwrap_or_else(|error| panic!("{text} is {spelled}: {error}"));
            assert_eq!(again.spec(), policy.spec(), "{text}");
        }
    });
}
