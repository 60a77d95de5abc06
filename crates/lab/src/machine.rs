//! The spelling of a machine.

use lsmith_sim::Machine;
use lsmith_spec::{Params, Spec, SpecError};

/// The name of the spec of a machine.
const NAME: &str = "machine";

/// The greatest number that a rate may have: a second.
const NANOS_MAX: f64 = 1e9;

/// The rates of a machine by name, in the order of its spec.
type Field = (&'static str, fn(&mut Machine) -> &mut f64);

const FIELDS: [Field; 26] = [
    ("cores", |machine| &mut machine.cores),
    ("write", |machine| &mut machine.write.each),
    ("write_byte", |machine| &mut machine.write.part),
    ("put_p50", |machine| &mut machine.put.small[0]),
    ("put_p99", |machine| &mut machine.put.small[1]),
    ("put_p999", |machine| &mut machine.put.small[2]),
    ("put_1kb_p50", |machine| &mut machine.put.large[0]),
    ("put_1kb_p99", |machine| &mut machine.put.large[1]),
    ("put_1kb_p999", |machine| &mut machine.put.large[2]),
    ("get", |machine| &mut machine.get.each),
    ("get_run", |machine| &mut machine.get.part),
    ("scan", |machine| &mut machine.scan.each),
    ("scan_run", |machine| &mut machine.scan.part),
    ("scan_entry", |machine| &mut machine.scan_entry),
    ("flush_entry", |machine| &mut machine.flush.each),
    ("flush_byte", |machine| &mut machine.flush.part),
    ("merge_entry", |machine| &mut machine.merge.each),
    ("merge_byte", |machine| &mut machine.merge.part),
    ("append_entry", |machine| &mut machine.append.each),
    ("append_byte", |machine| &mut machine.append.part),
    ("fold", |machine| &mut machine.fold),
    ("plan", |machine| &mut machine.plan),
    ("sync", |machine| &mut machine.sync.each),
    ("sync_byte", |machine| &mut machine.sync.part),
    ("slowdown", |machine| &mut machine.slowdown),
    ("slice", |machine| &mut machine.slice),
];

/// Returns the machine that `spec` describes.
///
/// # Errors
/// Fails if a rate is unknown or out of range. A rate that is left out is 0.
pub fn machine_of(spec: &Spec) -> Result<Machine, SpecError> {
    if spec.name != NAME {
        return Err(SpecError::unknown("machine", &spec.name, &[NAME]));
    }
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let params = Params::new(spec, &names, 0)?;
    let mut machine = Machine::default();
    for (name, field) in FIELDS {
        *field(&mut machine) = params.real(name, 0.0, 0.0..=NANOS_MAX)?;
    }
    machine.cores = machine.cores.max(1.0);
    Ok(machine)
}

/// Returns the spec of `machine`, with three digits of each rate.
#[must_use]
pub fn spec_of_machine(machine: &Machine) -> Spec {
    let mut machine = *machine;
    FIELDS.iter().fold(Spec::bare(NAME), |spec, (name, field)| {
        spec.with(*name, rounded(*field(&mut machine)))
    })
}

/// Returns `number` with three digits.
fn rounded(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let power = 2 - number.log10().floor() as i32;
    // A power of ten below 1 is not exact.
    let scale = 10f64.powi(power.abs());
    if power < 0 { (number / scale).round() * scale } else { (number * scale).round() / scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_of_a_machine_is_read_back() {
        let mut machine = Machine::default();
        for (number, (_, field)) in (1..).zip(FIELDS) {
            *field(&mut machine) = f64::from(number) + 0.5;
        }
        let spec = spec_of_machine(&machine);
        assert_eq!(machine_of(&spec.to_string().parse().unwrap()).unwrap(), machine);
        // Three digits are kept.
        machine.plan = 123_456.0;
        machine.slice = 33_123_456.0;
        let spec = spec_of_machine(&machine).to_string();
        assert!(spec.contains("plan=123000,") && spec.contains("slice=33100000)"), "{spec}");
    }

    #[test]
    fn bad_machines_are_refused() {
        for (spec, needle) in [
            ("computer(cores=2)", "machine"),
            ("machine(core=2)", "`cores`"),
            ("machine(write=-1)", "write"),
            ("machine(write=fast)", "write"),
        ] {
            let error = machine_of(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(needle), "{spec}: {error}");
        }
    }
}
