//! Writes the names of curves beside their points, so that no name covers another.

use super::axis::Scale;
use super::chart::{Curve, CurveKind};
use anyhow::anyhow;
use plotters::chart::ChartContext;
use plotters::element::{EmptyElement, PathElement, Text};
use plotters::prelude::{Cartesian2d, Color, IntoFont, RGBColor, SVGBackend};
use plotters::style::TextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Debug;
use std::ops::Range;

/// The most curves of markers that have names beside them, and the letters of a name.
pub(super) const NAMED_MAX: usize = 16;
const NAME_LETTERS_MAX: usize = 28;
/// The height of a name, and the width of a letter, in pixels.
const HEIGHT: i32 = 14;
const LETTER: f64 = 6.4;
/// How far a name stands from the point, and half the side of a marker.
const GAP: i32 = 10;
const MARKER: i32 = 6;
/// The lines above and below a point that a name may move to.
const LINES_MAX: i32 = 16;

/// The part of a chart where points are.
pub(super) type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// A part of a chart, in pixels.
#[derive(Clone, Copy, Debug)]
struct Room {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Room {
    fn meets(self, other: Room) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Returns the room of a name of `letters` letters beside `point`, `line` lines below it.
    fn of_name((x, y): (i32, i32), letters: usize, line: i32, is_left: bool) -> Room {
        let width = (letters as f64 * LETTER).ceil() as i32;
        let left = if is_left { x - GAP - width } else { x + GAP };
        let top = y + line * HEIGHT - HEIGHT / 2;
        Room { left, right: left + width, top, bottom: top + HEIGHT }
    }

    fn of_marker((x, y): (i32, i32)) -> Room {
        Room { left: x - MARKER, right: x + MARKER, top: y - MARKER, bottom: y + MARKER }
    }

    fn is_within(self, (across, down): &(Range<i32>, Range<i32>)) -> bool {
        self.left >= across.start
            && self.right <= across.end
            && self.top >= down.start
            && self.bottom <= down.end
    }
}

/// Writes the names of the curves of `plot` that have names. The best and the bare ones come first.
/// A name that finds no room is left to the legend.
pub(super) fn draw_names(
    plot: &mut Plot<'_, '_>,
    curves: &[Curve],
    (x, y): (&Scale, &Scale),
) -> anyhow::Result<()> {
    let is_marked = |curve: &&Curve| curve.kind == CurveKind::Markers;
    let few = curves.iter().filter(is_marked).count() <= NAMED_MAX;
    let range = plot.plotting_area().get_pixel_range();
    let mut named = Vec::new();
    let mut taken = Vec::new();
    for curve in curves {
        let is_shown = |point: &&(f64, f64)| x.shows(point.0) && y.shows(point.1);
        let shown: Vec<&(f64, f64)> = curve.points.iter().filter(is_shown).collect();
        let Some(&&place) = shown.get(shown.len() / 2) else { continue };
        let pixel = plot.plotting_area().map_coordinate(&place);
        let rank = match curve.kind {
            CurveKind::Winner => 0,
            CurveKind::Bare => 1,
            CurveKind::Markers => 2,
            CurveKind::Line | CurveKind::Cloud => continue,
        };
        if rank != 1 {
            taken.push(Room::of_marker(pixel));
        }
        if rank < 2 || few {
            named.push((rank, curve, place, pixel));
        }
    }
    named.sort_by_key(|(rank, ..)| *rank);
    for (rank, curve, place, pixel) in named {
        let best = if rank == 0 { "best: " } else { "" };
        let name = shortened(&format!("{best}{}", curve.name), NAME_LETTERS_MAX);
        let is_late = pixel.0 > range.0.start + (range.0.end - range.0.start) * 6 / 10;
        let lines = (0..=LINES_MAX).flat_map(|line| [-line, line]);
        let mut places = lines.flat_map(|line| [(line, is_late), (line, !is_late)]);
        let room = |(line, is_left)| {
            let room = Room::of_name(pixel, name.chars().count(), line, is_left);
            let is_free = room.is_within(&range) && !taken.iter().any(|other| room.meets(*other));
            is_free.then_some((room, line, is_left))
        };
        if let Some((room, line, is_left)) = places.find_map(room) {
            taken.push(room);
            draw_name(plot, &name, place, line, is_left)?;
        }
    }
    Ok(())
}

/// Writes a name, with a line to its point if it is not right beside it.
fn draw_name(
    plot: &mut Plot<'_, '_>,
    name: &str,
    place: (f64, f64),
    line: i32,
    is_left: bool,
) -> anyhow::Result<()> {
    let side = if is_left { HPos::Right } else { HPos::Left };
    let style = TextStyle::from(("sans-serif", 12).into_font()).pos(Pos::new(side, VPos::Center));
    let (across, down) = (if is_left { -GAP } else { GAP }, line * HEIGHT);
    let text = Text::new(name.to_owned(), (across, down), style);
    let end = if line == 0 { (0, 0) } else { (across, down) };
    let leader = PathElement::new([(0, 0), end], RGBColor(160, 160, 160).stroke_width(1));
    let named = EmptyElement::at(place) + leader + text;
    plot.draw_series(std::iter::once(named)).map_err(failed)?;
    Ok(())
}

/// Returns the beginning of a long name.
pub(super) fn shortened(name: &str, letters_max: usize) -> String {
    match name.chars().count() > letters_max {
        true => name.chars().take(letters_max - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Converts an error of the drawing library, because its errors borrow from the drawing.
pub(super) fn failed(error: impl Debug) -> anyhow::Error {
    anyhow!("the sheet cannot be drawn: {error:?}")
}
