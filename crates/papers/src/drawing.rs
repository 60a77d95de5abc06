//! Draws figures as SVG.

use super::{Figure, Panel};
use anyhow::Context;
use lsmith_lab::plot::{Chart, Curve, CurveKind, Sheet};
use std::path::{Path, PathBuf};

/// The most points of a curve that are joined by a line. If a curve has more, no curve of its panel
/// is a line.
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
/// all panels that share one with the first panel. So does a policy that differs from one of the
/// first panel in its parameters only, such as the bound on runs. Other panels begin anew.
fn names(figure: &Figure, panel: &Panel) -> Vec<String> {
    let of_panel = |panel: &Panel| -> Vec<String> {
        figure.policies(&panel.name).into_iter().map(str::to_owned).collect()
    };
    let own = of_panel(panel);
    let mut places = figure.panels.first().map_or_else(Vec::new, of_panel);
    let family = |name: &str| name.split('(').next().unwrap_or(name).to_owned();
    let families: Vec<String> = places.iter().map(|name| family(name)).collect();
    let is_alone = |place: usize| families.iter().filter(|f| **f == families[place]).count() == 1;
    // The place of a policy if the first panel has the same one with other parameters.
    let like = |name: &str, taken: &[String]| {
        let place = families.iter().position(|known| *known == family(name))?;
        (is_alone(place) && !taken.contains(&places[place])).then_some(place)
    };
    let known = |name: &&String| places.contains(name) || like(name, &[]).is_some();
    if !own.iter().any(|name| known(&name)) {
        return own;
    }
    let renamed: Vec<(usize, String)> = own
        .iter()
        .filter(|name| !places.contains(name))
        .filter_map(|name| Some((like(name, &own)?, name.clone())))
        .collect();
    for (place, name) in renamed {
        places[place] = name;
    }
    for name in figure.panels.iter().flat_map(of_panel) {
        let is_new =
            !places.contains(&name) && (own.contains(&name) || !families.contains(&family(&name)));
        if is_new {
            places.push(name);
        }
    }
    places
}

/// Returns the sheet of one panel.
fn sheet(figure: &Figure, panel: &Panel) -> Sheet {
    let title = match panel.title.as_str() {
        "" => format!("{}: {}", figure.name, figure.title),
        title => format!("{} ({}): {title}", figure.name, panel.name),
    };
    let policies = figure.policies(&panel.name);
    let is_long = |policy: &&str| figure.curve(&panel.name, policy).count() > LINE_POINTS_MAX;
    let kind = if policies.iter().any(is_long) { CurveKind::Cloud } else { CurveKind::Line };
    let curve = |policy: &str| {
        let points = figure.curve(&panel.name, policy).collect();
        Curve { name: policy.to_owned(), kind, points }
    };
    let chart = Chart {
        title,
        x: panel.x.clone(),
        y: panel.y.clone(),
        curves: policies.into_iter().map(curve).collect(),
    };
    Sheet { names: names(figure, panel), charts: vec![chart], columns: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_lab::plot::Axis;

    /// A figure of single merges had lines for the policies with few of them.
    #[test]
    fn a_panel_has_clouds_or_lines_but_not_both() {
        let only = Panel::only(Axis::linear("x", ""), Axis::linear("y", ""));
        let mut figure = Figure::empty("figure", "a figure", vec![only]);
        (0..=LINE_POINTS_MAX).for_each(|x| figure.point("", "many", x as f64, 1.0));
        figure.point("", "few", 1.0, 1.0);
        let kinds = |figure: &Figure| -> Vec<CurveKind> {
            let sheet = sheet(figure, &figure.panels[0]);
            sheet.charts[0].curves.iter().map(|curve| curve.kind).collect()
        };
        assert_eq!(kinds(&figure), [CurveKind::Cloud, CurveKind::Cloud]);
        figure.points.remove(0);
        assert_eq!(kinds(&figure), [CurveKind::Line, CurveKind::Line]);
    }

    /// Figures of several bounds have a panel per bound, in which policies should look the same.
    #[test]
    fn policies_look_the_same_in_all_panels() {
        let panel =
            |name: &str| Panel::new(name, name, Axis::linear("x", ""), Axis::linear("y", ""));
        let panels: Vec<Panel> = ["a", "b", "c", "d"].into_iter().map(panel).collect();
        let mut figure = Figure::empty("figure", "a figure", panels.clone());
        for (panel, policies) in [
            ("a", &["binomial(k=6)", "tiered", "leveled(ratio=9)"][..]),
            ("b", &["binomial(k=7)", "tiered", "leveled(ratio=6)"]),
            ("c", &["tiered", "leveled(ratio=4)", "binomial(k=9)", "leveled(ratio=9)", "full"]),
            ("d", &["full", "rr"]),
        ] {
            policies.iter().for_each(|policy| figure.point(panel, policy, 1.0, 1.0));
        }
        let places = |panel: usize, policies: &[&str]| -> Vec<usize> {
            let names = names(&figure, &panels[panel]);
            let place = |policy: &&str| names.iter().position(|name| name == policy).unwrap();
            policies.iter().map(place).collect()
        };
        assert_eq!(places(0, &["binomial(k=6)", "tiered", "leveled(ratio=9)"]), [0, 1, 2]);
        assert_eq!(places(1, &["binomial(k=7)", "tiered", "leveled(ratio=6)"]), [0, 1, 2]);
        assert_eq!(places(2, &["binomial(k=9)", "tiered", "leveled(ratio=9)"]), [0, 1, 2]);
        let others = places(2, &["leveled(ratio=4)", "full"]);
        assert!(others[0] > 2 && others[1] > 2 && others[0] != others[1], "{others:?}");
        assert_eq!(places(3, &["full", "rr"]), [0, 1], "nothing in common with the first panel");
    }
}
