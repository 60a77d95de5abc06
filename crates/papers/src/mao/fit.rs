//! Fits lines and curves to points.

use crate::numbers::mean;

/// The least-squares line of some points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// The change of y per x.
    pub(super) slope: f64,
    /// The y value at x = 0.
    pub(super) intercept: f64,
    /// The share of the variance of y that the line explains; 1 if it meets every point.
    pub(super) r_squared: f64,
}

/// Fits a line to `points`. `None` if all x or all y are equal.
pub(super) fn fit_line(points: &[(f64, f64)]) -> Option<Line> {
    let mean_x = mean(points.iter().map(|(x, _)| *x))?;
    let mean_y = mean(points.iter().map(|(_, y)| *y))?;
    let mut xx = 0.0;
    let mut xy = 0.0;
    let mut yy = 0.0;
    for (x, y) in points {
        let dx = x - mean_x;
        let dy = y - mean_y;
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    if xx == 0.0 || yy == 0.0 {
        return None;
    }
    let slope = xy / xx;
    Some(Line { slope, intercept: mean_y - slope * mean_x, r_squared: xy * xy / (xx * yy) })
}

/// Returns the exponent p of the curve `c * x^p` that fits `points` best on logarithmic axes. All
/// coordinates must be positive.
pub(super) fn power_of(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    fit_line(&logs).map(|line| line.slope)
}

/// Interpolates `points`, x ascending, at `x`, linearly on logarithmic axes. `None` outside their
/// range.
pub(super) fn between(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let pair = points.windows(2).find(|pair| pair[0].0 <= x && x <= pair[1].0)?;
    let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
    if x0 == x1 {
        return Some(y0);
    }
    let share = (x / x0).ln() / (x1 / x0).ln();
    Some(y0 * (y1 / y0).powf(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found() {
        let line = fit_line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert_eq!(line, Line { slope: 2.0, intercept: 1.0, r_squared: 1.0 });
    }

    /// By hand: means 2 and 2; squares 2 and 2, product 1.
    #[test]
    fn r_squared_is_the_share_explained() {
        let line = fit_line(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]).unwrap();
        assert_eq!((line.slope, line.intercept, line.r_squared), (0.5, 1.0, 0.25));
    }

    #[test]
    fn a_line_falls_as_well_as_it_rises() {
        let line = fit_line(&[(1.0, 4.0), (3.0, 0.0)]).unwrap();
        assert_eq!((line.slope, line.r_squared), (-2.0, 1.0));
    }

    #[test]
    fn no_line_without_two_different_points() {
        for points in [&[][..], &[(1.0, 1.0)], &[(1.0, 1.0), (1.0, 2.0)], &[(1.0, 1.0), (2.0, 1.0)]]
        {
            assert_eq!(fit_line(points), None, "{points:?}");
        }
    }

    #[test]
    fn powers() {
        let points = |y: fn(f64) -> f64| [1.0, 2.0, 5.0, 9.0].map(|x| (x, y(x)));
        assert!((power_of(&points(|x| 7.0 * x.cbrt())).unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert!((power_of(&points(|x| 2.0 * x)).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn between_points_on_logarithmic_axes() {
        let curve = [(1.0, 8.0), (4.0, 2.0), (16.0, 2.0)];
        assert!((between(&curve, 2.0).unwrap() - 4.0).abs() < 1e-12);
        assert!((between(&curve, 8.0).unwrap() - 2.0).abs() < 1e-12);
        assert_eq!(between(&curve, 4.0), Some(2.0));
        assert_eq!((between(&curve, 0.5), between(&curve, 17.0)), (None, None));
    }
}
