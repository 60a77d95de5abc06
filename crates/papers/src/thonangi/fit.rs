//! Fits polynomials to points.

/// A least-squares polynomial.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The coefficients, constant first.
    pub(super) coefficients: Vec<f64>,
    /// R squared: the share of the variance of y that the polynomial explains; 1 if y is constant.
    pub(super) explained: f64,
}

/// Fits a polynomial of `degree` to `points`. `None` if there are too few points.
pub(super) fn fit(points: &[(f64, f64)], degree: usize) -> Option<Fit> {
    let terms = degree + 1;
    if points.len() < terms {
        return None;
    }
    // The normal equations, solved by elimination with pivots.
    let mut rows = vec![vec![0.0; terms + 1]; terms];
    for (x, y) in points {
        for (power, row) in rows.iter_mut().enumerate() {
            for (other, cell) in row.iter_mut().enumerate().take(terms) {
                *cell += x.powi((power + other) as i32);
            }
            row[terms] += y * x.powi(power as i32);
        }
    }
    for column in 0..terms {
        let pivot = (column..terms)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let pivot = rows[column].clone();
        if pivot[column] == 0.0 {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != column) {
            let factor = row[column] / pivot[column];
            debug_assert_ne!(index, column);
            row.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let coefficients: Vec<f64> = (0..terms).map(|at| rows[at][terms] / rows[at][at]).collect();
    let value = |x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|(x, y)| (y - value(*x)).powi(2)).sum();
    let explained = if total > 0.0 { 1.0 - left / total } else { 1.0 };
    Some(Fit { coefficients, explained })
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn points_on_a_parabola_give_it_back() {
        let points: Vec<(f64, f64)> =
            (0..7).map(f64::from).map(|x| (x, 3.0 - 2.0 * x + 0.5 * x * x)).collect();
        let parabola = fit(&points, 2).unwrap();
        for (found, expected) in parabola.coefficients.iter().zip([3.0, -2.0, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{parabola:?}");
        }
        assert!(parabola.explained > 1.0 - 1e-9);
        assert!(fit(&points, 1).unwrap().explained < 0.9);
        assert!(fit(&points[..2], 2).is_none());
    }
}
