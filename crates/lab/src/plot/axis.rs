//! Axes: their ranges and ticks.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use serde::Serialize;
use std::ops::Range;

/// The number of ticks to aim for.
const TICKS: f64 = 6.0;
/// The fewest ticks of a logarithmic axis.
const LOG_TICKS_MIN: usize = 4;
/// The first digits of ticks of logarithmic axes, from coarse to fine.
const LOG_DIGITS: [&[f64]; 4] =
    [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]];
/// The most ticks before a coarser series is taken.
const LOG_TICKS_MAX: usize = 9;

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// The unit: bytes, blocks per MB, seconds. Empty for a pure number.
    pub unit: String,
    /// True for a logarithmic axis. All its values must then be positive.
    pub is_log: bool,
    /// True if the axis starts at the smallest value. Otherwise a linear axis starts at 0.
    pub is_close: bool,
}

impl Axis {
    /// Returns a linear axis.
    #[must_use]
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.to_owned(), unit: unit.to_owned(), is_log: false, is_close: false }
    }

    /// Returns a logarithmic axis.
    #[must_use]
    pub fn log(label: &str, unit: &str) -> Axis {
        Axis { is_log: true, ..Axis::linear(label, unit) }
    }

    /// Returns the same axis, starting at the smallest value instead of 0.
    #[must_use]
    pub fn close(self) -> Axis {
        Axis { is_close: true, ..self }
    }

    /// Returns label and unit in one line.
    #[must_use]
    pub fn label_with_unit(&self) -> String {
        match self.unit.as_str() {
            "" => self.label.clone(),
            unit => format!("{} ({unit})", self.label),
        }
    }
}

/// The range and the ticks of an axis over given values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    is_log: bool,
    /// The least and the greatest value in sight.
    low: f64,
    high: f64,
    /// The values with ticks, ascending.
    pub(super) ticks: Vec<f64>,
}

impl Scale {
    /// Returns a scale that shows all `values`. Values that the axis cannot show are ignored.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let shown = values.filter(|value| value.is_finite() && (!axis.is_log || *value > 0.0));
        let bounds = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), bounds);
        let (low, high) = match (low.is_finite(), axis.is_log) {
            (false, _) => (0.1, 1.0),
            (true, true) => (low / 1.12, high * 1.12),
            (true, false) if axis.is_close && high > low => {
                let margin = (high - low) * 0.06;
                (low - margin, high + margin)
            }
            (true, false) if high > low.min(0.0) => {
                let low = low.min(0.0);
                let high = high.max(0.0);
                (
                    low - if low < 0.0 { (high - low) * 0.05 } else { 0.0 },
                    high + (high - low) * 0.05,
                )
            }
            (true, false) => (0.0, 1.0),
        };
        let is_log = axis.is_log;
        let ticks = if is_log { log_ticks(low, high) } else { linear_ticks(low, high) };
        Scale { is_log, low, high, ticks }
    }

    /// Returns true if the axis can show a value.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_log || value > 0.0)
    }

    /// Returns the part of the axis below a value: 0 at its low end, 1 at its high end.
    fn share(&self, value: f64) -> f64 {
        if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.share(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

/// Returns multiples of a round step.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(power);
    let first = (low / step).ceil() as i64;
    (first..).map(|n| n as f64 * step).take_while(|tick| *tick <= high).collect()
}

/// Returns round numbers: the coarsest series that has enough of them in sight.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let series = |digits: &[f64]| -> Vec<f64> {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks = powers.flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)));
        ticks.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let found = LOG_DIGITS.iter().map(|digits| series(digits));
    match found.into_iter().find(|ticks| ticks.len() >= LOG_TICKS_MIN) {
        Some(ticks) if ticks.len() > LOG_TICKS_MAX => {
            let step = ticks.len().div_ceil(LOG_TICKS_MAX);
            ticks.into_iter().step_by(step).collect()
        }
        Some(ticks) => ticks,
        None => linear_ticks(low, high),
    }
}

/// Returns a number beside an axis.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Sums of steps, and powers of logarithms, have rounding errors.
    format!("{}{unit}", (scaled * 1e6).round() / 1e6 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> Vec<f64> {
        Scale::of(axis, values.iter().copied()).ticks
    }

    #[test]
    fn logarithmic_axes_have_ticks_between_powers_of_ten() {
        let log = Axis::log("x", "");
        assert_eq!(ticks(&log, &[2.1, 8.0]), [2.0, 3.0, 4.0, 5.0, 7.0]);
        assert_eq!(ticks(&log, &[1.0, 50.0]), [1.0, 3.0, 10.0, 30.0]);
        assert_eq!(ticks(&log, &[1.0, 1e4]), [1.0, 10.0, 100.0, 1e3, 1e4]);
        // Too narrow for round numbers of any series.
        assert_eq!(ticks(&log, &[5.0, 5.1]), [4.5, 5.0, 5.5]);
        assert!(ticks(&log, &[1e-30, 1e30]).len() <= LOG_TICKS_MAX);
    }

    #[test]
    fn linear_axes_start_at_zero_unless_they_are_close() {
        let axis = Axis::linear("x", "");
        assert_eq!(ticks(&axis, &[90.0, 100.0]), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(&axis.close(), &[90.0, 100.0]), [90.0, 92.0, 94.0, 96.0, 98.0, 100.0]);
    }

    #[test]
    fn an_axis_without_values_or_of_one_value_has_a_range() {
        for axis in [Axis::linear("x", ""), Axis::log("x", ""), Axis::linear("x", "").close()] {
            for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[3.0], &[-2.0]] {
                let scale = Scale::of(&axis, values.iter().copied());
                assert!(scale.low < scale.high, "{axis:?} {values:?}: {scale:?}");
                assert!(!scale.ticks.is_empty(), "{axis:?} {values:?}: {scale:?}");
            }
        }
    }

    #[test]
    fn large_numbers_are_short() {
        for (value, text) in [
            (0.1 + 0.2, "0.3"),
            (-0.0, "0"),
            (1500.0, "1500"),
            (20_000.0, "20k"),
            (2.5e6, "2.5M"),
            (1e10, "10G"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
