//! `reproduce`: measures a figure of a paper again.

use crate::args::ReproduceArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::layout::{prose_width, wrapped};
use crate::output::{print, print_json};
use crate::specs;
use crate::table::{prose, table};
use lsmith_papers::{
    Claim, Effort, FIGURES, Figure, Panel, Takes, Test, Verdict, draw_svg, figure_named,
};
use serde_json::{Value, json};

pub(crate) fn reproduce(args: &ReproduceArgs, json: bool) -> anyhow::Result<()> {
    let Some(name) = args.figure.as_deref().filter(|name| *name != "list") else {
        return match args.policy.is_empty() {
            true => list(json),
            false => Err(bad_argument("`--policy` needs a figure: expected such as `mao-fig5`")),
        };
    };
    let info = figure_named(name).map_err(bad_argument)?;
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let own = args.policy.iter().map(|spec| specs::policy(spec));
    let own = own.collect::<anyhow::Result<Vec<_>>>()?;
    own.iter().try_for_each(|own| info.check_takes(&**own)).map_err(bad_argument)?;
    let bars = Bars::new();
    let figure = info.measure_beside(&own, effort, &bars)?;
    drop(bars);
    let drawn = match &args.svg {
        Some(dir) => draw_svg(&figure, dir)?,
        None => Vec::new(),
    };
    if json {
        return print_json(&figure);
    }
    let mut parts = vec![shown(&figure)];
    parts.extend(drawn.iter().map(|path| format!("drawn: {}", path.display())));
    Ok(print(parts.join("\n\n"))?)
}

/// Prints all figures that can be reproduced.
fn list(json: bool) -> anyhow::Result<()> {
    if json {
        let figures = FIGURES.iter().map(
            |info| json!({ "name": info.name, "title": info.title, "policies": taken(info.takes) }),
        );
        return print_json(&json!({ "figures": figures.collect::<Value>() }));
    }
    let rows = FIGURES.iter().map(|info| {
        vec![info.name.to_owned(), info.title.to_owned(), taken(info.takes).to_owned()]
    });
    Ok(print(prose(&["figure", "what it shows", "--policy"], rows.collect()))?)
}

/// Returns the policies that `--policy` may name.
fn taken(takes: Takes) -> &'static str {
    match takes {
        Takes::Any => "any",
        Takes::InBlocks => "in blocks",
        Takes::Nothing(_) => "none",
    }
}

fn shown(figure: &Figure) -> String {
    let mut parts = vec![format!("{}: {}", figure.name, figure.title)];
    parts.extend(figure.panels.iter().map(|panel| points(figure, panel)));
    if !figure.claims.is_empty() {
        parts.push(claims(&figure.claims));
        parts.extend(reasons(&figure.claims));
    }
    parts.extend(figure.notes.iter().map(|note| wrapped(note, prose_width())));
    parts.join("\n\n")
}

/// Returns a table with a column per policy and a row per x.
fn points(figure: &Figure, panel: &Panel) -> String {
    let policies = figure.policies(&panel.name);
    let x = panel.x.label_with_unit();
    let header: Vec<&str> = [x.as_str()].into_iter().chain(policies.iter().copied()).collect();
    let rows = figure.xs(&panel.name).into_iter().map(|x| {
        let y = |policy: &&str| figure.y(&panel.name, policy, x);
        let cells = policies.iter().map(|policy| y(policy).map_or("-".to_owned(), number));
        [number(x)].into_iter().chain(cells).collect()
    });
    let title = match panel.name.as_str() {
        "" => panel.y.label_with_unit(),
        name => format!("{name}: {}: {}", panel.title, panel.y.label_with_unit()),
    };
    format!("{title}\n{}", table(&header, 0, rows.collect()))
}

fn claims(claims: &[Claim]) -> String {
    let rows = claims.iter().map(|claim| {
        let allowed = match claim.test {
            Test::Near => format!("+-{}", number(claim.tolerance)),
            Test::AtMost => format!("<= {}", number(claim.tolerance)),
            Test::AtLeast => format!(">= {}", number(claim.tolerance)),
        };
        let verdict = match claim.verdict {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
        };
        vec![
            claim.claim.clone(),
            claim.paper.map_or("-".to_owned(), number),
            number(claim.measured),
            allowed,
            verdict.to_owned(),
        ]
    });
    prose(&["claim", "paper", "measured", "allowed", "verdict"], rows.collect())
}

/// Returns one paragraph per reason for claims that differ. Claims with the same reason share it.
fn reasons(claims: &[Claim]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for claim in claims {
        let Some(why) = claim.why.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, claims)) => claims.push(&claim.claim),
            None => reasons.push((why, vec![&claim.claim])),
        }
    }
    let paragraph = |(why, claims): (&str, Vec<&str>)| {
        let claims: Vec<String> = claims.iter().map(|claim| format!("\"{claim}\"")).collect();
        let verb = if claims.len() == 1 { "differs" } else { "differ" };
        wrapped(&format!("Why {} {verb}: {why}", claims.join(" and ")), prose_width())
    };
    reasons.into_iter().map(paragraph).collect()
}

/// Formats a number with three significant digits. Numbers from 100 on have no decimals.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size => (2 - size.log10().floor() as i64).clamp(0, 6) as usize,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // A number that rounds to 0 has no sign.
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1234.5, "1234"),
            (200.0, "200"),
            (20.0, "20"),
            (-42.18, "-42.2"),
            (0.07, "0.07"),
            (0.99456, "0.995"),
            (3.0, "3"),
            (-0.000_000_1, "0"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn claims_with_one_reason_are_explained_together() {
        let mut figure = Figure::empty("drawn", "a drawing", Vec::new());
        figure.near("rr costs one", 1.0, 2.0, 0.5);
        figure.near("rr costs two", 2.0, 2.0, 0.5);
        figure.near("rr costs three", 3.0, 2.0, 0.5);
        figure.near("full costs four", 4.0, 2.0, 0.5);
        figure.explain("rr costs", "it always costs two.");
        let paragraphs = reasons(&figure.claims);
        assert_eq!(
            paragraphs,
            ["Why \"rr costs one\" and \"rr costs three\" differ: it always costs two."]
        );
    }
}
