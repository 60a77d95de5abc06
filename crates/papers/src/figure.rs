//! Figures: panels, points, claims and notes.

use lsmith_lab::plot::Axis;
use serde::Serialize;
use std::ops::RangeInclusive;

/// A figure of a paper, measured again.
///
/// A figure starts [`empty`](Figure::empty); points, claims and notes are added. In JSON the points
/// are the array `series`, one object per point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the figure, such as `thonangi-fig2`.
    #[serde(rename = "figure")]
    pub name: String,
    /// The title, one line.
    pub title: String,
    /// The panels in their order; at least one.
    pub panels: Vec<Panel>,
    /// The claims of the paper with verdicts.
    pub claims: Vec<Claim>,
    /// The measured points: panel by panel, curve by curve, x ascending.
    #[serde(rename = "series")]
    pub points: Vec<Point>,
    /// The notes that a reader needs, each a few sentences.
    pub notes: Vec<String>,
}

/// One coordinate system of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Panel {
    /// The letter, such as `a`; empty for the only panel.
    pub name: String,
    /// The title, a few words; may be empty for the only panel.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The panel of the point; absent from the JSON of figures with one panel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// The curve of the point: the spec of a policy.
    pub policy: String,
    /// The x value, in the unit of the panel's x axis.
    pub x: f64,
    /// The y value, in the unit of the panel's y axis.
    pub y: f64,
}

/// A claim of a paper and the measured result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim, with the unit of the numbers.
    pub claim: String,
    /// The paper's number; `None` if it gives none.
    pub paper: Option<f64>,
    /// The number measured here.
    pub measured: f64,
    /// The test that decides.
    pub test: Test,
    /// The largest distance from the paper's number, or the bound: see [`Test`].
    pub tolerance: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for a difference, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The test of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Holds if the measured number is within the tolerance of the paper's.
    Near,
    /// Holds if the measured number is at most the tolerance.
    AtMost,
    /// Holds if the measured number is at least the tolerance.
    AtLeast,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The claim holds, within the tolerance.
    Holds,
    /// The measured number differs from the claim.
    Differs,
}

/// The range of all x.
pub(crate) const ALL: RangeInclusive<f64> = f64::NEG_INFINITY..=f64::INFINITY;

impl Panel {
    /// Returns one panel of several.
    pub fn new(name: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis) -> Panel {
        Panel { name: name.into(), title: title.into(), x, y }
    }

    /// Returns the panel of a figure with one panel.
    #[must_use]
    pub fn only(x: Axis, y: Axis) -> Panel {
        Panel::new("", "", x, y)
    }
}

impl Figure {
    /// Returns a figure without points, claims and notes.
    #[must_use]
    pub fn empty(name: &str, title: &str, panels: Vec<Panel>) -> Figure {
        Figure {
            name: name.to_owned(),
            title: title.to_owned(),
            panels,
            claims: Vec::new(),
            points: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a point to the curve `policy` of `panel`.
    pub fn point(&mut self, panel: &str, policy: &str, x: f64, y: f64) {
        let panel = panel.to_owned();
        let policy = policy.to_owned();
        self.points.push(Point { panel, policy, x, y });
    }

    /// Adds a point to the curve `policy` of `panel` for each of `points`.
    pub(crate) fn draw(
        &mut self,
        panel: &str,
        policy: &str,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        points.into_iter().for_each(|(x, y)| self.point(panel, policy, x, y));
    }

    /// Claims that a number is within `tolerance` of the paper's. Claims nothing if `measured` is
    /// `None`: then there are too few measurements to judge.
    pub fn near(
        &mut self,
        claim: impl Into<String>,
        paper: f64,
        measured: impl Into<Option<f64>>,
        tolerance: f64,
    ) {
        self.judge(claim.into(), Some(paper), measured.into(), Test::Near, tolerance);
    }

    /// Claims that a number, or a difference, is at most `bound`. `None` as in
    /// [`near`](Figure::near).
    pub fn at_most(
        &mut self,
        claim: impl Into<String>,
        measured: impl Into<Option<f64>>,
        bound: f64,
    ) {
        self.judge(claim.into(), None, measured.into(), Test::AtMost, bound);
    }

    /// Claims that a number, or a difference, is at least `bound`. `None` as in
    /// [`near`](Figure::near).
    pub fn at_least(
        &mut self,
        claim: impl Into<String>,
        measured: impl Into<Option<f64>>,
        bound: f64,
    ) {
        self.judge(claim.into(), None, measured.into(), Test::AtLeast, bound);
    }

    fn judge(
        &mut self,
        claim: String,
        paper: Option<f64>,
        measured: Option<f64>,
        test: Test,
        tolerance: f64,
    ) {
        let Some(measured) = measured else { return };
        let holds = match test {
            Test::Near => paper.is_some_and(|paper| (measured - paper).abs() <= tolerance),
            Test::AtMost => measured <= tolerance,
            Test::AtLeast => measured >= tolerance,
        };
        let verdict = if holds { Verdict::Holds } else { Verdict::Differs };
        self.claims.push(Claim { claim, paper, measured, test, tolerance, verdict, why: None });
    }

    /// Sets the reason of all differing claims whose wording contains `part`.
    pub fn explain(&mut self, part: &str, why: impl Into<String>) {
        let why = why.into();
        for claim in &mut self.claims {
            if claim.verdict == Verdict::Differs && claim.claim.contains(part) {
                claim.why = Some(why.clone());
            }
        }
    }

    /// Adds a note.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns the curves of `panel`, in the order of their first points.
    #[must_use]
    pub fn policies(&self, panel: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in self.points.iter().filter(|point| point.panel == panel) {
            if !names.contains(&point.policy.as_str()) {
                names.push(&point.policy);
            }
        }
        names
    }

    /// Returns x and y of all points of the curve `policy` of `panel`.
    pub fn curve<'a>(
        &'a self,
        panel: &'a str,
        policy: &'a str,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let all = self.points.iter();
        let points = all.filter(move |point| point.panel == panel && point.policy == policy);
        points.map(|point| (point.x, point.y))
    }

    /// Returns the y value of `policy` at exactly `x` in `panel`.
    #[must_use]
    pub fn y(&self, panel: &str, policy: &str, x: f64) -> Option<f64> {
        self.curve(panel, policy).find(|(at, _)| *at == x).map(|(_, y)| y)
    }

    /// Returns every x of the points of `panel`, ascending.
    #[must_use]
    pub fn xs(&self, panel: &str) -> Vec<f64> {
        let points = self.points.iter().filter(|point| point.panel == panel);
        let mut xs: Vec<f64> = points.map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Returns what `curve` has over what `base` has, at `x` in `panel`.
    pub(crate) fn ratio(&self, panel: &str, curve: &str, base: &str, x: f64) -> Option<f64> {
        Some(self.y(panel, curve, x)? / self.y(panel, base, x)?)
    }

    /// Returns by how many percent `curve` is above `base` at `x` in `panel`; negative for below.
    pub(crate) fn excess(&self, panel: &str, curve: &str, base: &str, x: f64) -> Option<f64> {
        Some((self.ratio(panel, curve, base, x)? - 1.0) * 100.0)
    }

    /// Returns the excess at each x of `panel` within `range`.
    pub(crate) fn excesses(
        &self,
        panel: &str,
        curve: &str,
        base: &str,
        range: RangeInclusive<f64>,
    ) -> Vec<f64> {
        let xs = self.xs(panel).into_iter().filter(|x| range.contains(x));
        xs.filter_map(|x| self.excess(panel, curve, base, x)).collect()
    }
}
