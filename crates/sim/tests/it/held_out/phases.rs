//! Histories with phases.

use super::settings::{BYTES_MAX, Draws};
use lsmith_workload::{Inputs, Workload};
use std::fmt::Write as _;
use std::io::BufRead;

/// A file in memory.
struct Text(String);

impl Inputs for Text {
    fn open<'a>(&'a self, _: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

/// What the operations of a phase do.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Puts new keys in key order.
    Ordered,
    /// Puts new keys in random order.
    Scattered,
    /// Puts any key that was written, with equal chance.
    Update,
    /// Puts one of the first fiftieth of keys.
    Hot,
    /// Puts new keys in key order, and deletes the oldest of them by turns.
    Queue,
    /// Deletes keys that were written, in key order.
    DeleteOrdered,
    /// Deletes any key that was written.
    DeleteAny,
}

/// Draws a history of two to five phases, and names it.
pub(super) fn trace(draws: &mut Draws, ops: u64, value: u64) -> (Workload, String) {
    let loads = [Phase::Ordered, Phase::Scattered, Phase::Queue];
    let all = [
        Phase::Ordered,
        Phase::Scattered,
        Phase::Update,
        Phase::Hot,
        Phase::Queue,
        Phase::DeleteOrdered,
        Phase::DeleteAny,
    ];
    let mut text = "timestamp,op,key,value_size\n".to_owned();
    let mut name = "trace".to_owned();
    let mut keys: Vec<String> = Vec::new();
    let count = 2 + draws.below(4);
    for at in 0..count {
        let phase = if at == 0 { draws.one_of(&loads) } else { draws.one_of(&all) };
        let own = (ops as f64 / count as f64 * draws.number(0.5, 1.5)) as u64;
        let value =
            if draws.is(0.7) { value } else { draws.count(50, (BYTES_MAX / ops).min(4096)) };
        let _ = write!(name, " {phase:?} {own} x {value}B,");
        let prefix = draws.one_of(&["a", "b", "c"]);
        let known = keys.len() as u64;
        // The deletes of a queue follow its puts at a distance of a fifth of the phase.
        let lag = own / 10 * 2;
        let is_delete = |at: u64| match phase {
            Phase::DeleteOrdered | Phase::DeleteAny => true,
            Phase::Queue => at % 2 == 1 && at >= lag,
            _ => false,
        };
        if matches!(phase, Phase::DeleteOrdered) {
            keys.sort_unstable();
        }
        for at in 0..own {
            let key = match phase {
                Phase::Queue if is_delete(at) => format!("{prefix}{:08}", known + at - lag - 1),
                Phase::Ordered | Phase::Queue => format!("{prefix}{:08}", known + at),
                Phase::Scattered => format!("b{:08}", scattered(known + at)),
                Phase::Update | Phase::DeleteAny => keys[draws.below(known) as usize].clone(),
                Phase::Hot => keys[draws.below(known.div_ceil(50)) as usize].clone(),
                Phase::DeleteOrdered => keys[(at % known) as usize].clone(),
            };
            let (op, bytes) = if is_delete(at) { ("delete", 0) } else { ("put", value) };
            let _ = writeln!(text, "{at},{op},{key},{bytes}");
            if matches!(phase, Phase::Ordered | Phase::Scattered | Phase::Queue) && op == "put" {
                keys.push(key);
            }
        }
    }
    let spec = "trace(t.csv)".parse().expect("a spec");
    (Workload::from_spec(&spec, &Text(text)).expect("a trace"), name)
}

/// Returns numbers in random order for numbers in a row.
fn scattered(number: u64) -> u64 {
    let hash = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 38
}
