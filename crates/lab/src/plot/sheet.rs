//! Draws sheets of charts as SVG.

use super::axis::{Scale, number};
use super::chart::{Chart, Curve, CurveKind, Sheet};
use super::names::{Plot, draw_names, failed, shortened};
use super::style::Style;
use anyhow::Context;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, EmptyElement, PathElement, Polygon, Text};
use plotters::prelude::{
    Color, DashedLineSeries, IntoDrawingArea, IntoFont, LineSeries, RGBColor, SVGBackend, WHITE,
};
use std::path::Path;

/// The width and height of a chart, in pixels.
const CHART: (u32, u32) = (680, 500);
/// The height of a line of the legend, and of its margins.
const LEGEND_LINE: u32 = 20;
const LEGEND_MARGIN: u32 = 40;
/// The width of the sample of a line in the legend, and of a letter.
const SAMPLE: i32 = 34;
const LETTER: f64 = 6.9;
const LETTERS_MAX: usize = 60;
const MARKER_RADIUS: f64 = 4.0;
/// The most markers of a curve. More would hide each other and the line.
const MARKERS_MAX: usize = 40;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Sheet {
    /// Returns the text of an SVG file.
    ///
    /// # Errors
    /// Fails if the sheet cannot be drawn.
    pub fn svg(&self) -> anyhow::Result<String> {
        draw(self)
    }

    /// Draws the sheet into the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let message = || format!("cannot write {}", path.display());
        std::fs::write(path, self.svg()?).with_context(message)
    }
}

/// Returns the sheet as the text of an SVG file.
fn draw(sheet: &Sheet) -> anyhow::Result<String> {
    let columns = sheet.columns.clamp(1, sheet.charts.len().max(1));
    let rows = sheet.charts.len().div_ceil(columns).max(1);
    let legend = Legend::of(sheet);
    let width = CHART.0 * columns as u32;
    let height = (CHART.1 * rows as u32).max(legend.height());
    let mut drawing = String::new();
    {
        let size = (width + legend.width(), height);
        let root = SVGBackend::with_string(&mut drawing, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let (left, right) = root.split_horizontally(width as i32);
        let (top, _) = left.split_vertically((CHART.1 * rows as u32) as i32);
        for (area, chart) in top.split_evenly((rows, columns)).iter().zip(&sheet.charts) {
            plot(area, chart, &legend)?;
        }
        legend.draw(&right)?;
        root.present().map_err(failed)?;
    }
    Ok(drawing)
}

/// The names of all curves with their styles.
struct Legend {
    /// Name, index of the style, and how the curve is drawn.
    entries: Vec<(String, usize, CurveKind)>,
}

impl Legend {
    fn of(sheet: &Sheet) -> Legend {
        let mut names: Vec<&str> = sheet.names.iter().map(String::as_str).collect();
        let curves = || sheet.charts.iter().flat_map(|chart| &chart.curves);
        for curve in curves() {
            if !names.contains(&curve.name.as_str()) {
                names.push(&curve.name);
            }
        }
        let entry = |(index, name): (usize, &str)| {
            let curve = curves().find(|curve| curve.name == name)?;
            Some((name.to_owned(), index, curve.kind))
        };
        Legend { entries: names.into_iter().enumerate().filter_map(entry).collect() }
    }

    fn style(&self, name: &str) -> Style {
        let found = self.entries.iter().find(|(known, ..)| known == name);
        Style::of(found.map_or(0, |(_, index, _)| *index))
    }

    fn width(&self) -> u32 {
        let longest = self.entries.iter().map(|(name, ..)| name.chars().count()).max();
        let letters = longest.unwrap_or(0).min(LETTERS_MAX);
        SAMPLE as u32 + 30 + (letters as f64 * LETTER) as u32
    }

    fn height(&self) -> u32 {
        LEGEND_LINE * self.entries.len() as u32 + 2 * LEGEND_MARGIN
    }

    fn draw(&self, area: &Area<'_>) -> anyhow::Result<()> {
        for (line, (name, index, kind)) in self.entries.iter().enumerate() {
            let style = Style::of(*index);
            let y = LEGEND_MARGIN as i32 + 8 + LEGEND_LINE as i32 * line as i32;
            if matches!(kind, CurveKind::Line | CurveKind::Bare) {
                sample(area, &style, y)?;
            }
            if *kind != CurveKind::Bare {
                let centre = EmptyElement::at((8 + SAMPLE / 2, y));
                area.draw(&(centre + filled(&style))).map_err(failed)?;
            }
            let name = shortened(name, LETTERS_MAX);
            let font = ("sans-serif", 13).into_font();
            area.draw(&Text::new(name, (SAMPLE + 16, y - 7), font)).map_err(failed)?;
        }
        Ok(())
    }
}

/// Draws the sample of a line in the legend.
fn sample(area: &Area<'_>, style: &Style, y: i32) -> anyhow::Result<()> {
    let (drawn, left_out) = style.dash.map_or((SAMPLE, 1), |(on, off)| (on as i32, off as i32));
    let mut x = 8;
    while x < 8 + SAMPLE {
        let end = (x + drawn).min(8 + SAMPLE);
        let part = PathElement::new(vec![(x, y), (end, y)], style.colour.stroke_width(2));
        area.draw(&part).map_err(failed)?;
        x = end + left_out;
    }
    Ok(())
}

fn plot(area: &Area<'_>, chart: &Chart, legend: &Legend) -> anyhow::Result<()> {
    let points = || chart.curves.iter().flat_map(|curve| &curve.points);
    let x = Scale::of(&chart.x, points().map(|point| point.0));
    let y = Scale::of(&chart.y, points().map(|point| point.1));
    let mut plot = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(x.clone(), y.clone())
        .map_err(failed)?;
    plot.configure_mesh()
        .x_desc(chart.x.label_with_unit())
        .y_desc(chart.y.label_with_unit())
        .bold_line_style(RGBColor(224, 224, 224))
        .light_line_style(WHITE)
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .x_label_formatter(&|tick| number(*tick))
        .y_label_formatter(&|tick| number(*tick))
        .draw()
        .map_err(failed)?;
    for curve in &chart.curves {
        draw_curve(&mut plot, curve, &legend.style(&curve.name), (&x, &y))?;
    }
    draw_names(&mut plot, &chart.curves, (&x, &y))
}

/// Returns the marker of a curve, around its point.
fn filled(style: &Style) -> Polygon<(i32, i32)> {
    Polygon::new(style.marker(MARKER_RADIUS), style.colour.filled())
}

fn draw_curve(
    plot: &mut Plot<'_, '_>,
    curve: &Curve,
    style: &Style,
    (x, y): (&Scale, &Scale),
) -> anyhow::Result<()> {
    let is_shown = |point: &(f64, f64)| x.shows(point.0) && y.shows(point.1);
    let places: Vec<(f64, f64)> = curve.points.iter().copied().filter(is_shown).collect();
    let colour = style.colour;
    if matches!(curve.kind, CurveKind::Line | CurveKind::Bare) {
        let stroke = colour.stroke_width(2);
        let line = places.iter().copied();
        match style.dash {
            None => plot.draw_series(LineSeries::new(line, stroke)).map_err(failed)?,
            Some((on, off)) => {
                let line = DashedLineSeries::new(line, on, off, stroke);
                plot.draw_series(line).map_err(failed)?
            }
        };
    }
    match curve.kind {
        CurveKind::Bare => {}
        CurveKind::Cloud => {
            let dots = places.into_iter().map(|place| Circle::new(place, 1, colour.filled()));
            plot.draw_series(dots).map_err(failed)?;
        }
        CurveKind::Line => {
            let marker = |place| EmptyElement::at(place) + filled(style);
            let step = places.len().div_ceil(MARKERS_MAX).max(1);
            plot.draw_series(places.into_iter().step_by(step).map(marker)).map_err(failed)?;
        }
        // Points of several curves can have one place: all must be seen.
        CurveKind::Markers | CurveKind::Winner => {
            let marker = |place| {
                let corners = style.marker(6.0);
                let outline = corners.iter().chain(corners.first()).copied().collect::<Vec<_>>();
                EmptyElement::at(place)
                    + Polygon::new(corners, colour.mix(0.3).filled())
                    + PathElement::new(outline, colour.stroke_width(2))
            };
            plot.draw_series(places.into_iter().map(marker)).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::super::names::NAMED_MAX;
    use super::*;

    fn sheet(names: &[&str]) -> Sheet {
        let curve = |name: &&str| Curve {
            name: (*name).to_owned(),
            kind: CurveKind::Line,
            points: vec![(1.0, 2.0), (3.0, 4.0), (f64::NAN, 1.0), (0.0, -1.0)],
        };
        let chart = Chart {
            title: "a < b & c".to_owned(),
            x: Axis::log("x", "bytes"),
            y: Axis::log("y", ""),
            curves: names.iter().map(curve).collect(),
        };
        Sheet { names: Vec::new(), charts: vec![chart.clone(), chart], columns: 2 }
    }

    /// The legend lies beside the charts, and has room for all names.
    #[test]
    fn legend_lies_beside_the_data() {
        let all: Vec<String> = (0..60).map(|n| format!("policy {n}")).collect();
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        let sheet = sheet(&names);
        let legend = Legend::of(&sheet);
        let drawing = sheet.svg().unwrap();
        let number = |text: &str, name: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let width = number(&drawing, "width");
        let height = number(&drawing, "height");
        assert!((width - f64::from(2 * CHART.0 + legend.width())).abs() < 1.0);
        for name in names {
            let (before, _) = drawing.split_once(&format!("\n{name}\n")).unwrap();
            let text = &before[before.rfind("<text").unwrap()..];
            assert!(number(text, "x") > f64::from(2 * CHART.0), "{text}");
            assert!(number(text, "y") < height, "{text}");
        }
        assert!(drawing.contains("a &lt; b &amp; c"));
    }

    /// A chart without names had to be read with the legend, colour by colour.
    #[test]
    fn names_stand_beside_points_unless_there_are_too_many() {
        let curve = |name: String, kind| Curve { name, kind, points: vec![(1.0, 2.0)] };
        let drawing = |count: usize| {
            let mut curves: Vec<Curve> =
                (1..count).map(|n| curve(format!("policy {n}"), CurveKind::Markers)).collect();
            curves.push(curve("winner".to_owned(), CurveKind::Winner));
            curves.push(curve("optimum".to_owned(), CurveKind::Bare));
            let [x, y] = ["x", "y"].map(|label| Axis::linear(label, ""));
            let chart = Chart { title: "chart".to_owned(), x, y, curves };
            Sheet { names: Vec::new(), charts: vec![chart], columns: 1 }.svg().unwrap()
        };
        let count = |text: &str, name: &str| text.matches(&format!("\n{name}\n")).count();
        // The legend has each name too.
        for (curves, named) in [(NAMED_MAX, 2), (NAMED_MAX + 2, 1)] {
            let text = drawing(curves);
            assert_eq!(count(&text, "policy 1"), named, "{curves}");
            assert_eq!((count(&text, "best: winner"), count(&text, "optimum")), (1, 2), "{curves}");
        }
    }

    /// Names of points at one place and near the edges covered each other.
    #[test]
    fn names_do_not_cover_each_other() {
        let curve = |n: usize| Curve {
            name: format!("policy(ratio={n})"),
            kind: CurveKind::Markers,
            points: vec![(1.0 + (n / 8) as f64, 2.0 + (n % 4) as f64 / 100.0)],
        };
        let curves: Vec<Curve> = (0..NAMED_MAX).map(curve).collect();
        let [x, y] = ["x", "y"].map(|label| Axis::linear(label, ""));
        let chart = Chart { title: "chart".to_owned(), x, y, curves };
        let sheet = Sheet { names: Vec::new(), charts: vec![chart], columns: 1 };
        let drawing = sheet.svg().unwrap();
        let mut places = Vec::new();
        for text in drawing.split("<text").skip(1).filter(|text| text.contains("\npolicy(")) {
            let number = |name: &str| -> f64 {
                let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            };
            let [x, y] = [number("x"), number("y")];
            let is_legend = x > f64::from(CHART.0);
            let from = if text.contains("\"end\"") { x - 90.0 } else { x };
            places.extend((!is_legend).then_some((from, y)));
        }
        assert_eq!(places.len(), NAMED_MAX, "{places:?}");
        for (index, (x, y)) in places.iter().enumerate() {
            let meets = |(other_x, other_y): &(f64, f64)| {
                (x - other_x).abs() < 80.0 && (y - other_y).abs() < 12.0
            };
            assert!(!places[..index].iter().any(meets), "{places:?}");
        }
    }

    #[test]
    fn sheets_without_points_are_drawn() {
        assert!(sheet(&[]).svg().unwrap().contains("bytes"));
        let empty = Sheet { names: Vec::new(), charts: Vec::new(), columns: 0 };
        assert!(empty.svg().unwrap().starts_with("<svg "));
    }
}
