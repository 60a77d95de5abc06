//! Figure 5: the cost of a threshold.

use super::fit::fit;
use super::scale::{scale_note, small_scale};
use super::steady::{Bench, Keys, Steady};
use super::sweep::{Spot, Sweep, least};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;

const PANELS: [(&str, Keys, &str); 2] =
    [("a", Keys::Uniform, "uniform"), ("b", Keys::NORMAL, "normal(sigma=0.005, omega=10k)")];
/// The policy of the curve. Each point has its own threshold.
const CURVE: &str = "mixed";
/// The size of an index of four levels; the paper does not give it.
const DATASET_MB: u64 = 200;

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let step = if effort.is_quick { 2 } else { 1 };
    let mut spots = Vec::new();
    for (panel, keys, _) in PANELS {
        for tenths in (0..=10).step_by(step) {
            let x = f64::from(tenths) / 10.0;
            let policy = format!("{CURVE}(tau={x}, beta=true)");
            let bench = Bench::small(&policy, keys, DATASET_MB, small_scale(effort));
            spots.push(Spot { panel, curve: CURVE.to_owned(), x, bench });
        }
    }
    let sweep = Sweep::measure(info.name, spots, progress)?;
    let panel = |(name, _, title): (&str, Keys, &str)| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("threshold tau_2", ""),
        y: Axis::linear("C(tau_2)", "blocks into levels 1 and 2 per record merged").close(),
    };
    let mut figure = Figure::empty(info.name, info.title, PANELS.map(panel).to_vec());
    sweep.draw(&mut figure, cost);
    claims(&mut figure);
    figure.note(scale_note([(DATASET_MB, small_scale(effort))]));
    Ok(figure)
}

/// Returns C(tau_2) of definition 1: merges from level 2 are full, and their cost does not count.
fn cost(steady: &Steady) -> f64 {
    steady.level_costs.iter().take(2).sum::<f64>() / steady.records_merged
}

fn claims(figure: &mut Figure) {
    let curves = ["a", "b"].map(|panel| figure.curve(panel, CURVE).collect::<Vec<_>>());
    let parabolas = curves.iter().filter_map(|curve| fit(curve, 2));
    figure.claim(least(parabolas.map(|parabola| parabola.explained)).map(|explained| {
        let claim = "both curves are roughly quadratic: least R^2 of a parabola";
        Claim::at_least(claim, explained, 0.9)
    }));
    for (curve, name) in curves.iter().zip(["uniform", "normal"]) {
        let claim = format!("{name}: one local minimum, so many");
        figure.claim(Claim::near(claim, 1.0, local_minima(curve) as f64, 0.0));
    }
    let [uniform, normal] = curves.each_ref().map(|curve| best(curve));
    figure.claim(uniform.zip(normal).map(|(uniform, normal)| {
        let claim = "the best threshold is smaller under normal than under uniform, by";
        Claim::at_least(claim, uniform - normal, 0.05)
    }));
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
