//! How far predictions are off.

use crate::report::{Costs, EngineReport, PhysicalCosts, SimulationReport};
use serde::Serialize;

/// The prediction errors of one row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// The errors of the keyed simulation.
    pub keyed: PredictionErrors,
    /// The errors of the unit simulation.
    pub unit: Option<PredictionErrors>,
    /// The errors of the fluid simulation.
    pub fluid: Option<PredictionErrors>,
    /// The error of the formula's `write_cost_system`; `None` also if the store made no flush.
    pub model: Option<f64>,
}

/// For each figure (predicted - measured) / measured; `None` if the store measured 0 or did not
/// measure the figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PredictionErrors {
    /// Of [`Costs::write_cost_eager`].
    pub write_cost_eager: Option<f64>,
    /// Of [`Costs::write_cost_system`].
    pub write_cost_system: Option<f64>,
    /// Of [`Costs::read_cost_mean`].
    pub read_cost_mean: Option<f64>,
    /// Of [`Costs::read_cost_mean_l0_one`].
    pub read_cost_mean_l0_one: Option<f64>,
    /// Of the blocks of [`Costs::scan_cost_mean`].
    pub scan_cost_mean: Option<f64>,
    /// Of the blocks of [`Costs::scan_cost_measured`].
    pub scan_cost_measured: Option<f64>,
    /// Of [`Costs::read_cost_uncached`].
    pub read_cost_uncached: Option<f64>,
    /// Of [`Costs::scan_cost_uncached`].
    pub scan_cost_uncached: Option<f64>,
    /// Of [`Costs::space_cost_peak`].
    pub space_cost_peak: Option<f64>,
    /// Of [`Costs::space_cost_mean`].
    pub space_cost_mean: Option<f64>,
    /// Of [`PhysicalCosts::write_cost_user`](crate::PhysicalCosts::write_cost_user).
    pub write_cost_user: Option<f64>,
    /// Of [`PhysicalCosts::space_cost_physical_mean`](crate::PhysicalCosts).
    pub space_cost_physical_mean: Option<f64>,
}

impl PredictionErrors {
    pub(crate) fn of(predicted: &SimulationReport, measured: &EngineReport) -> PredictionErrors {
        let error = |figure: fn(&Costs) -> Option<f64>| {
            relative(figure(&predicted.costs)?, figure(&measured.costs)?)
        };
        let physical = |figure: fn(&PhysicalCosts) -> f64, measured: Option<f64>| {
            relative(figure(predicted.physical.as_ref()?), measured?)
        };
        PredictionErrors {
            write_cost_eager: error(|costs| Some(costs.write_cost_eager)),
            write_cost_system: error(|costs| Some(costs.write_cost_system)),
            read_cost_mean: error(|costs| Some(costs.read_cost_mean)),
            read_cost_mean_l0_one: error(|costs| Some(costs.read_cost_mean_l0_one)),
            scan_cost_mean: error(|costs| costs.scan_cost_mean.blocks),
            scan_cost_measured: error(|costs| costs.scan_cost_measured?.blocks),
            read_cost_uncached: error(|costs| costs.read_cost_uncached),
            scan_cost_uncached: error(|costs| costs.scan_cost_uncached),
            space_cost_peak: error(|costs| costs.space_cost_peak),
            space_cost_mean: error(|costs| costs.space_cost_mean),
            write_cost_user: physical(|costs| costs.write_cost_user, measured.write_cost_user),
            space_cost_physical_mean: physical(
                |costs| costs.space_cost_physical_mean,
                measured.space_cost_physical_mean,
            ),
        }
    }
}

/// Returns (predicted - measured) / measured. `None` if nothing was measured.
pub(crate) fn relative(predicted: f64, measured: f64) -> Option<f64> {
    (measured > 0.0).then(|| (predicted - measured) / measured)
}
