//! Draws figures as SVG.

use super::{Figure, Panel};
use crate::plot::{Chart, Curve, CurveKind, Sheet};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// The most points that are joined by a line.
const LINE_POINTS_MAX: usize = 500;

/// Draws every panel of `figure` into a file of its own in `dir`: NAME.svg, or NAME-PANEL.svg if
/// there are several. Creates `dir` if it is missing. Returns the paths of the files.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn draw_svg(figure: &Figure, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let message = || format!("cannot make the directory {}", dir.display());
    std::fs::create_dir_all(dir).with_context(message)?;
    let draw = |panel: &Panel| {
        let name = match panel.name.as_str() {
            "" => format!("{}.svg", figure.name),
            letter => format!("{}-{letter}.svg", figure.name),
        };
        let path = dir.join(name);
        sheet(figure, panel).write(&path)?;
        Ok(path)
    };
    figure.panels.iter().map(draw).collect()
}

/// Returns the names of curves in the order in which they take styles. A policy looks the same in
/// all panels that share one with the first panel. Other panels begin anew.
fn names(figure: &Figure, panel: &Panel) -> Vec<String> {
    let of_panel = |panel: &Panel| -> Vec<String> {
        figure.policies(&panel.name).into_iter().map(str::to_owned).collect()
    };
    let mut names = figure.panels.first().map_or_else(Vec::new, of_panel);
    let own = of_panel(panel);
    if !own.iter().any(|name| names.contains(name)) {
        return own;
    }
    for name in figure.panels.iter().flat_map(of_panel) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the sheet of one panel.
fn sheet(figure: &Figure, panel: &Panel) -> Sheet {
    let title = match panel.title.as_str() {
        "" => format!("{}: {}", figure.name, figure.title),
        title => format!("{} ({}): {title}", figure.name, panel.name),
    };
    let curve = |policy: &str| {
        let points: Vec<(f64, f64)> = figure.curve(&panel.name, policy).collect();
        // Too many points for a line: draw a cloud.
        let is_cloud = points.len() > LINE_POINTS_MAX;
        let kind = if is_cloud { CurveKind::Cloud } else { CurveKind::Line };
        Curve { name: policy.to_owned(), kind, points }
    };
    let chart = Chart {
        title,
        x: panel.x.clone(),
        y: panel.y.clone(),
        curves: figure.policies(&panel.name).into_iter().map(curve).collect(),
    };
    Sheet { names: names(figure, panel), charts: vec![chart], columns: 1 }
}
