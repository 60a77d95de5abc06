//! Draws figures as SVG.

use super::{Axis, Figure, Panel};
use anyhow::{Context, anyhow};
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::element::{Circle, PathElement};
use plotters::prelude::{
    Color, IntoDrawingArea, IntoLogRange, LineSeries, RGBColor, SVGBackend, SeriesLabelPosition,
    WHITE,
};
use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The width and height of a drawing, in pixels.
const SIZE: (u32, u32) = (900, 600);

/// The most points that are joined by a line.
const LINE_POINTS_MAX: usize = 500;

/// Colours that colour-blind readers can distinguish (Okabe & Ito), in the order in which curves
/// use them.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(140, 140, 140),
];

/// Draws every panel of `figure` into a file of its own in `dir`: NAME.svg, or NAME-PANEL.svg if
/// there are several. Creates `dir` if it is missing. Returns the paths of the files.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn draw_svg(figure: &Figure, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let message = || format!("cannot make the directory {}", dir.display());
    std::fs::create_dir_all(dir).with_context(message)?;
    let mut paths = Vec::new();
    for panel in &figure.panels {
        let name = match panel.name.as_str() {
            "" => format!("{}.svg", figure.name),
            letter => format!("{}-{letter}.svg", figure.name),
        };
        let path = dir.join(name);
        let drawing = draw(figure, panel)?;
        let message = || format!("cannot write {}", path.display());
        std::fs::write(&path, drawing).with_context(message)?;
        paths.push(path);
    }
    Ok(paths)
}

/// Returns one panel as the text of an SVG file.
fn draw(figure: &Figure, panel: &Panel) -> anyhow::Result<String> {
    let points = figure.points.iter().filter(|point| point.panel == panel.name);
    let (x, y): (Vec<f64>, Vec<f64>) = points.map(|point| (point.x, point.y)).unzip();
    let (x, y) = (spread(&panel.x, &x), spread(&panel.y, &y));
    match (panel.x.is_log, panel.y.is_log) {
        (false, false) => plot(figure, panel, x, y),
        (true, false) => plot(figure, panel, x.log_scale(), y),
        (false, true) => plot(figure, panel, x, y.log_scale()),
        (true, true) => plot(figure, panel, x.log_scale(), y.log_scale()),
    }
}

/// Returns the range of an axis that shows all `values`. A linear axis that is not close starts
/// at 0.
fn spread(axis: &Axis, values: &[f64]) -> Range<f64> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !(low.is_finite() && high.is_finite()) {
        return 0.5..1.0;
    }
    if axis.is_log {
        low / 1.1..high * 1.1
    } else if axis.is_close && high > low {
        let margin = (high - low) * 0.1;
        low - margin..high + margin
    } else {
        low.min(0.0)..if high > 0.0 { high * 1.05 } else { 1.0 }
    }
}

fn plot<X, Y>(figure: &Figure, panel: &Panel, x: X, y: Y) -> anyhow::Result<String>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut drawing = String::new();
    {
        let root = SVGBackend::with_string(&mut drawing, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let title = match panel.title.as_str() {
            "" => figure.name.clone(),
            title => format!("{}: {title}", figure.name),
        };
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(panel.x.label_with_unit())
            .y_desc(panel.y.label_with_unit())
            .light_line_style(WHITE);
        mesh.x_label_formatter(&tick).y_label_formatter(&tick);
        mesh.draw().map_err(failed)?;
        for (index, policy) in figure.policies(&panel.name).into_iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            // Too many points for a line: draw a cloud.
            let is_cloud = figure.curve(&panel.name, policy).count() > LINE_POINTS_MAX;
            let curve = figure.curve(&panel.name, policy).filter(|_| !is_cloud);
            let line = LineSeries::new(curve, colour.stroke_width(2));
            let legend =
                move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2));
            chart.draw_series(line).map_err(failed)?.label(policy).legend(legend);
            let curve = figure.curve(&panel.name, policy);
            let radius = if is_cloud { 1 } else { 3 };
            let dots = curve.map(|point| Circle::new(point, radius, colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::LowerRight).border_style(RGBColor(160, 160, 160));
        legend.background_style(WHITE.mix(0.8)).draw().map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(drawing)
}

/// Formats a number beside an axis.
fn tick(value: &f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", (value / 1e3).round() / 1e3),
        // Sums of steps have rounding errors.
        _ => format!("{}", (value * 1e6).round() / 1e6 + 0.0),
    }
}

/// Converts an error of the drawing library, because its errors borrow from the drawing.
fn failed(error: impl Debug) -> anyhow::Error {
    anyhow!("the figure cannot be drawn: {error:?}")
}
