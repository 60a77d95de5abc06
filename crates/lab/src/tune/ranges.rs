//! The parameters that are tried of a policy that is known by its `PolicyInfo` alone.
//!
//! The policy itself says which values it takes: its `build` refuses all others. So every value
//! that is tried lies in the range that the policy declares.

use lsmith_policy::{ParamInfo, Registry};
use lsmith_spec::{Spec, SpecError};

/// The whole numbers that are tried at first, as far as the policy takes them.
const WHOLE: [u64; 18] = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100, 200];

/// The whole numbers that are tried in pairs.
const PAIRED: [u64; 7] = [1, 2, 3, 4, 8, 16, 32];

/// The factors of a default that is no whole number.
const FACTORS: [f64; 7] = [0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 4.0];

/// The values of a parameter.
enum Values {
    Whole,
    Real(f64),
    Names(Vec<String>),
    /// Sizes in bytes and lists: a sample has smaller memtables, and a size would not shrink with
    /// them.
    Kept,
}

/// Returns `asked` with many values of each parameter that it does not fix, one parameter at a time
/// and two whole numbers together. `asked` comes first.
pub(super) fn tried(registry: &Registry, asked: &Spec) -> Vec<Spec> {
    let mut all = vec![asked.clone()];
    let mut whole: Vec<&str> = Vec::new();
    for param in free(registry, asked) {
        let one = |value: String| asked.clone().with(param.name, value);
        match values(registry, asked, param) {
            Values::Whole => {
                whole.push(param.name);
                all.extend(WHOLE.map(|value| one(value.to_string())));
            }
            Values::Real(default) => {
                all.extend(FACTORS.map(|factor| one(rounded(default * factor))));
            }
            Values::Names(names) => all.extend(names.into_iter().map(one)),
            Values::Kept => {}
        }
    }
    if let [first, second, ..] = whole[..] {
        let pairs = PAIRED.iter().flat_map(|one| PAIRED.iter().map(move |other| (one, other)));
        all.extend(pairs.map(|(one, other)| asked.clone().with(first, one).with(second, other)));
    }
    all.retain(|spec| registry.build_spec(spec).is_ok());
    all
}

/// Returns `spec`, which is `asked` with some parameters, with each number that `asked` does not
/// fix one and two steps lower and higher. A step is an eighth of the number.
pub(super) fn near(registry: &Registry, asked: &Spec, spec: &Spec) -> Vec<Spec> {
    let mut all = Vec::new();
    for param in free(registry, asked) {
        let now = spec.param(param.name).unwrap_or(param.default);
        let mut one = |value: String| {
            let mut other = spec.clone();
            other.params.retain(|(name, _)| name != param.name);
            all.push(other.with(param.name, value));
        };
        match (values(registry, asked, param), now.parse::<u64>(), now.parse::<f64>()) {
            (Values::Whole, Ok(now), _) => {
                let step = (now / 8).max(1);
                let lower = [step, 2 * step].into_iter().filter_map(|less| now.checked_sub(less));
                lower.chain([now + step, now + 2 * step]).for_each(|it| one(it.to_string()));
            }
            (Values::Real(_), _, Ok(now)) => {
                [0.875, 1.125].into_iter().for_each(|factor| one(rounded(now * factor)));
            }
            _ => {}
        }
    }
    all.retain(|spec| registry.build_spec(spec).is_ok());
    all
}

/// Returns a number with at most four decimals.
fn rounded(value: f64) -> String {
    ((value * 1e4).round() / 1e4).to_string()
}

/// Returns the parameters of the policy that `asked` does not fix.
fn free<'a>(registry: &'a Registry, asked: &'a Spec) -> impl Iterator<Item = &'static ParamInfo> {
    let info = registry.infos().iter().find(|info| info.name == asked.name);
    let params = info.into_iter().flat_map(|info| info.params);
    params.filter(|param| asked.param(param.name).is_none())
}

fn values(registry: &Registry, asked: &Spec, param: &ParamInfo) -> Values {
    // No policy has a choice of this name. The refusal has the names that there are.
    let refused = registry.build_spec(&asked.clone().with(param.name, "?")).err();
    match refused {
        Some(SpecError::Unknown { what, known, .. }) if what == "value" => Values::Names(known),
        _ if param.default.parse::<u64>().is_ok() => Values::Whole,
        _ => match param.default.parse::<f64>() {
            Ok(default) if default.is_finite() => Values::Real(default),
            _ => Values::Kept,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(specs: &[Spec]) -> Vec<String> {
        specs.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn values_lie_in_the_range_that_the_policy_takes() {
        let registry = Registry::builtin();
        let all = texts(&tried(&registry, &"tiered".parse().unwrap()));
        assert_eq!(all[0], "tiered");
        assert!(all.contains(&"tiered(ratio=2)".to_owned()), "{all:?}");
        assert!(!all.iter().any(|spec| spec.contains("ratio=0") || spec.contains("ratio=1)")));
        let fixed = tried(&registry, &"leveled(l0=1)".parse().unwrap());
        assert!(fixed.iter().all(|spec| spec.param("l0") == Some("1")), "{fixed:?}");
        let picks = fixed.iter().filter(|spec| spec.param("pick").is_some()).count();
        assert!(picks >= 6, "every pick: {fixed:?}");
        let exploring = texts(&tried(&registry, &"exploring(k=5)".parse().unwrap()));
        assert!(exploring.iter().any(|spec| spec.contains("lambda=")), "{exploring:?}");
    }

    #[test]
    fn neighbours_leave_fixed_parameters_alone() {
        let registry = Registry::builtin();
        let asked = "leveled(l0=2, pick=oldest, table=auto)".parse().unwrap();
        let spec = "leveled(l0=2, pick=oldest, table=auto, ratio=16)".parse().unwrap();
        let near = near(&registry, &asked, &spec);
        let ratios: Vec<_> = near.iter().filter_map(|spec| spec.param("ratio")).collect();
        assert_eq!(ratios, ["14", "12", "18", "20"]);
        assert!(near.iter().all(|spec| spec.param("l0") == Some("2")), "{near:?}");
    }
}
