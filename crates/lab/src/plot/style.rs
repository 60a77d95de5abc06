//! Colours, dashes and markers.

use plotters::prelude::RGBColor;

/// Colours that colour-blind readers can distinguish (eight of Okabe & Ito, three of Tol), in the
/// order in which curves use them.
const COLOURS: [RGBColor; 11] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
    RGBColor(136, 34, 85),
    RGBColor(153, 153, 51),
    RGBColor(51, 34, 136),
];

/// Lines: pixels drawn and left out in turn; none for solid lines.
const DASHES: [Option<(u32, u32)>; 3] = [None, Some((8, 4)), Some((2, 4))];

/// Markers as polygons around a point, with a radius of about 10.
const MARKERS: [&[(i32, i32)]; 7] = [
    &[
        (10, 0),
        (9, 5),
        (5, 9),
        (0, 10),
        (-5, 9),
        (-9, 5),
        (-10, 0),
        (-9, -5),
        (-5, -9),
        (0, -10),
        (5, -9),
        (9, -5),
    ],
    &[(-9, -9), (9, -9), (9, 9), (-9, 9)],
    &[(0, -12), (11, 8), (-11, 8)],
    &[(0, -13), (13, 0), (0, 13), (-13, 0)],
    &[(0, 12), (11, -8), (-11, -8)],
    &[
        (-4, -12),
        (4, -12),
        (4, -4),
        (12, -4),
        (12, 4),
        (4, 4),
        (4, 12),
        (-4, 12),
        (-4, 4),
        (-12, 4),
        (-12, -4),
        (-4, -4),
    ],
    &[
        (0, -5),
        (7, -12),
        (12, -7),
        (5, 0),
        (12, 7),
        (7, 12),
        (0, 5),
        (-7, 12),
        (-12, 7),
        (-5, 0),
        (-12, -7),
        (-7, -12),
    ],
];

/// The number of styles before one is used again.
#[cfg(test)]
const STYLES: usize = 77;

/// The look of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Style {
    pub(super) colour: RGBColor,
    pub(super) dash: Option<(u32, u32)>,
    marker: &'static [(i32, i32)],
}

impl Style {
    /// Returns the style of the curve with this index.
    pub(super) fn of(index: usize) -> Style {
        let round = index / COLOURS.len();
        Style {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[round % DASHES.len()],
            marker: MARKERS[(index + round) % MARKERS.len()],
        }
    }

    /// Returns the corners of the marker, around its point.
    pub(super) fn marker(&self, radius: f64) -> Vec<(i32, i32)> {
        let scaled = |length: i32| (f64::from(length) * radius / 10.0).round() as i32;
        self.marker.iter().map(|(x, y)| (scaled(*x), scaled(*y))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_curves_have_the_same_colour_and_marker() {
        for index in 0..STYLES {
            for other in 0..index {
                let one = Style::of(index);
                let two = Style::of(other);
                assert!(
                    one.colour != two.colour || one.marker != two.marker,
                    "{other} and {index}: {one:?}"
                );
            }
        }
        assert_eq!(Style::of(0).colour, Style::of(COLOURS.len()).colour);
        assert_ne!(Style::of(0).dash, Style::of(COLOURS.len()).dash);
    }
}
