//! Faults at the operations of one call.

use crate::dice::{Dice, full};
use lsmith::env::{Effect, Fault, Lasting};
use std::io::ErrorKind;

/// Returns the operations at which a call of `operations` operations is stopped: all of them, or
/// `sample` random ones in a short test.
pub(crate) fn stops(dice: &mut Dice, operations: u64, sample: usize) -> Vec<u64> {
    match full() {
        true => (0..operations).collect(),
        false => (0..sample).map(|_| dice.below(operations as usize) as u64).collect(),
    }
}

/// Returns a fault after `after` operations, and what the operation still does.
pub(crate) fn any_fault(dice: &mut Dice, after: u64) -> (Fault, Effect) {
    let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
    let effect = *dice.pick(&[Effect::Nothing, Effect::Partly, Effect::Wholly]);
    (Fault { class: None, after, lasting, kind: ErrorKind::Other }, effect)
}
