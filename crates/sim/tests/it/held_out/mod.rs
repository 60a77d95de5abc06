//! Fluid simulations say of their answers how far they may be off. These tests hold the claims
//! against keyed simulations, in settings that nobody has chosen.
//!
//! `LSMITH_SEED=7 cargo test -p lsmith-sim --test it held_out -- --nocapture` draws other settings,
//! and prints each with its claim and the errors of its write, read and space cost. `LSMITH_FULL=1`
//! draws four times as many.

mod phases;
mod settings;

use lsmith_sim::{Figures, FluidWorkload, KeyedWorkload, SimError, simulate_fluid, simulate_keyed};
use settings::Setting;
use std::env;

/// The settings of the test. They were not looked at while the claims were made.
const SEED: u64 = 25;

/// The number of settings that are drawn. Some are refused.
const SETTINGS: u64 = 110;

/// The claim of one answer, and its error.
struct Judged {
    name: String,
    claim: f64,
    /// What a keyed simulation finds over the answer, less 1: write cost, read cost, space cost.
    errors: [f64; 3],
}

impl Judged {
    fn is_outside(&self, cost: usize) -> bool {
        self.errors[cost].abs() > self.claim
    }
}

fn costs(figures: &Figures) -> [f64; 3] {
    [figures.write_cost_system, figures.read_cost_mean, figures.space_cost_mean]
}

/// Simulates a setting both ways.
///
/// # Errors
/// Fails if fluid simulations refuse it.
fn judge(setting: Setting) -> Result<Judged, SimError> {
    let Setting { policy, workload, workload_name, memtable_bytes } = setting;
    let expected = FluidWorkload::new(&workload)?;
    expected.check_entries(&*policy, memtable_bytes)?;
    let fluid = simulate_fluid(&policy, &expected, memtable_bytes, &mut |_| {})?;
    let claim = expected.uncertainty(&policy, memtable_bytes, &fluid)?;
    let input = KeyedWorkload::new(workload);
    let input = if expected.keeps_tables() { input } else { input.with_rewrites() };
    let keyed = simulate_keyed(&policy, &input, memtable_bytes, &mut |_| {})?.figures;
    let pairs = costs(&fluid.figures).into_iter().zip(costs(&keyed));
    let errors: Vec<f64> = pairs.map(|(fluid, keyed)| keyed / fluid - 1.0).collect();
    let flushes = keyed.parts.flushes;
    let name = format!("{}, {workload_name}, {memtable_bytes} B, {flushes} flushes", policy.spec());
    Ok(Judged { name, claim, errors: [errors[0], errors[1], errors[2]] })
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// At most one answer in fifty is outside of its claim, and half of the claims are within 3 %.
#[test]
fn claims_of_settings_that_nobody_has_chosen_hold() {
    let seed = number("LSMITH_SEED").unwrap_or(SEED);
    let is_full = env::var_os("LSMITH_FULL").is_some();
    let settings = if is_full { 4 * SETTINGS } else { SETTINGS };
    let mut all = Vec::new();
    for setting in 0..settings {
        match judge(Setting::draw(seed, setting)) {
            Ok(judged) => {
                let [writes, reads, space] = judged.errors.map(|error| 100.0 * error);
                let claim = 100.0 * judged.claim;
                let mark = if judged.is_outside(0) { " OUTSIDE" } else { "" };
                let Judged { name, .. } = &judged;
                println!(
                    "{setting}: claim {claim:.1}, off {writes:+.1} {reads:+.1} {space:+.1}{mark}: \
                     {name}"
                );
                all.push(judged);
            }
            Err(error @ (SimError::NotFluid { .. } | SimError::FewEntries { .. })) => {
                println!("{setting}: {error}");
            }
            Err(error) => panic!("setting {setting} of seed {seed}: {error}"),
        }
    }
    let mut claims: Vec<f64> = all.iter().map(|judged| judged.claim).collect();
    claims.sort_by(f64::total_cmp);
    let median = claims[claims.len() / 2];
    let outside = [0, 1, 2].map(|cost| all.iter().filter(|it| it.is_outside(cost)).count());
    println!("{} answers, {outside:?} outside, median claim {median:.4}", all.len());
    assert!(all.len() as u64 > settings * 4 / 5, "{} answers of {settings}", all.len());
    let names: Vec<&str> =
        all.iter().filter(|it| it.is_outside(0)).map(|it| it.name.as_str()).collect();
    assert!(50 * outside[0] <= all.len(), "outside of their claims: {names:#?}");
    assert!(median <= 0.03, "{median}");
}
