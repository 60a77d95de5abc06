//! Figure 5: the cost of a threshold.

use super::fit::fit;
use super::scale::{scale_note, small_scale};
use super::steady::{Bench, Keys, Steady};
use super::sweep::steady_states;
use crate::form::*;

const PANELS: [(&str, Keys, &str); 2] =
    [("a", Keys::Uniform, "uniform"), ("b", Keys::NORMAL, "normal(sigma=0.005, omega=10k)")];
/// The policy of the curve. Each point has its own threshold.
const CURVE: &str = "mixed";
/// The size of an index of four levels; the paper does not give it.
const DATASET_MB: u64 = 200;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = small_scale(task.effort);
    let tenths = (0..=10).step_by(task.pick(2, 1));
    let thresholds: Vec<f64> = tenths.map(|tenths| f64::from(tenths) / 10.0).collect();
    let all = PANELS.into_iter().flat_map(|(panel, keys, _)| {
        spots(panel, [CURVE], &thresholds, |_, x| {
            Bench::small(&format!("{CURVE}(tau={x}, beta=true)"), keys, DATASET_MB, shrink)
        })
    });
    let sweep = steady_states(task, task.name(), all.collect())?;
    let mut figure = task.figure(PANELS.map(|(name, _, title)| {
        let y = Axis::linear("C(tau_2)", "blocks into levels 1 and 2 per record merged").close();
        Panel::new(name, title, Axis::linear("threshold tau_2", ""), y)
    }));
    sweep.draw(&mut figure, cost);
    claims(&mut figure);
    figure.note(scale_note([(DATASET_MB, shrink)]));
    Ok(figure)
}

/// Returns C(tau_2) of definition 1: merges from level 2 are full, and their cost does not count.
fn cost(steady: &Steady) -> f64 {
    steady.level_costs.iter().take(2).sum::<f64>() / steady.records_merged
}

fn claims(figure: &mut Figure) {
    let curves = ["a", "b"].map(|panel| figure.curve(panel, CURVE).collect::<Vec<_>>());
    let parabolas = curves.iter().filter_map(|curve| fit(curve, 2));
    let claim = "both curves are roughly quadratic: least R^2 of a parabola";
    figure.at_least(claim, least(parabolas.map(|parabola| parabola.explained)), 0.9);
    for (curve, name) in curves.iter().zip(["uniform", "normal"]) {
        let minima = local_minima(curve) as f64;
        figure.near(format!("{name}: one local minimum, so many"), 1.0, minima, 0.0);
    }
    let [uniform, normal] = curves.each_ref().map(|curve| best(curve));
    let claim = "the best threshold is smaller under normal than under uniform, by";
    figure.at_least(claim, less(uniform, normal), 0.05);
}

/// Returns the x of the smallest y.
fn best(curve: &[(f64, f64)]) -> Option<f64> {
    curve.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(x, _)| *x)
}

/// Returns the local minima. The curve must rise by more than a thousandth after each.
fn local_minima(curve: &[(f64, f64)]) -> usize {
    let mut minima = 0;
    let mut falls = true;
    let mut turn = f64::INFINITY;
    for &(_, y) in curve {
        match falls {
            true if y > turn * 1.001 => (minima, falls, turn) = (minima + 1, false, y),
            false if y < turn * 0.999 => (falls, turn) = (true, y),
            true => turn = turn.min(y),
            false => turn = turn.max(y),
        }
    }
    minima + usize::from(falls)
}

#[cfg(test)]
mod tests {
    use super::local_minima;

    #[test]
    fn minima_are_counted_whatever_the_noise() {
        let curve = |ys: &[f64]| {
            let points = ys.iter().enumerate().map(|(x, y)| (x as f64, *y));
            local_minima(&points.collect::<Vec<_>>())
        };
        assert_eq!(curve(&[3.0, 2.0, 1.0, 2.0, 3.0]), 1);
        assert_eq!(curve(&[3.0, 2.0, 1.0, 1.0005, 0.9999, 2.0]), 1);
        assert_eq!(curve(&[3.0, 1.0, 2.0, 1.0, 3.0]), 2);
        assert_eq!(curve(&[3.0, 2.0, 1.0]), 1);
        assert_eq!(curve(&[1.0, 2.0, 3.0]), 1);
        assert_eq!(curve(&[1.0, 2.0, 1.5]), 2);
    }
}
