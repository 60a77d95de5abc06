//! What a figure is made of.

use serde::Serialize;

/// A figure of a paper as measured here.
///
/// A figure begins [`empty`](Figure::empty); points, claims and notes are then added. As JSON its
/// points are called `series`: one object per point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name under which it can be asked for, such as `thonangi-fig2`.
    #[serde(rename = "figure")]
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// Its panels, in the order in which they are shown: at least one.
    pub panels: Vec<Panel>,
    /// What the paper says of it, judged.
    pub claims: Vec<Claim>,
    /// What was measured: panel by panel, curve by curve, x ascending.
    #[serde(rename = "series")]
    pub points: Vec<Point>,
    /// What one must know to read it. One sentence or a few each.
    pub notes: Vec<String>,
}

/// One coordinate system of a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Panel {
    /// Its letter, such as `a`; empty for the only one.
    pub name: String,
    /// What it shows, in a few words; may be empty for the only one.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What it counts.
    pub label: String,
    /// In what: bytes, blocks per MB, seconds. Empty for a pure number.
    pub unit: String,
    /// Whether it is logarithmic. All its values must then be positive.
    pub is_log: bool,
    /// Whether it is drawn only as far as there are values; else one with equal steps is drawn from
    /// 0.
    pub is_close: bool,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The panel that it belongs to; absent from the JSON of figures with one panel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub panel: String,
    /// The curve that it belongs to: a policy as a user would type it.
    pub policy: String,
    /// In the unit of the panel's x axis.
    pub x: f64,
    /// In the unit of the panel's y axis.
    pub y: f64,
}

/// Something that the paper says, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// What the paper says, with the unit of the numbers.
    pub claim: String,
    /// Its number; `None` where the paper gives none.
    pub paper: Option<f64>,
    /// The number found here.
    pub measured: f64,
    /// What decides.
    pub test: Test,
    /// The largest distance from the paper's number, or the bound itself: see [`Test`].
    pub tolerance: f64,
    /// What was decided.
    pub verdict: Verdict,
    /// Why it differs, where it does and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How a claim is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Holds when the number found is no farther from the paper's than the tolerance.
    Near,
    /// Holds when the number found is at most the tolerance.
    AtMost,
    /// Holds when the number found is at least the tolerance.
    AtLeast,
}

/// Whether a claim was found to be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was, within the tolerance.
    Holds,
    /// It was not.
    Differs,
}

impl Axis {
    /// An axis with equal steps.
    #[must_use]
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.to_owned(), unit: unit.to_owned(), is_log: false, is_close: false }
    }

    /// An axis with equal ratios.
    #[must_use]
    pub fn log(label: &str, unit: &str) -> Axis {
        Axis { is_log: true, ..Axis::linear(label, unit) }
    }

    /// The same axis without what lies between 0 and the values.
    #[must_use]
    pub fn close(self) -> Axis {
        Axis { is_close: true, ..self }
    }

    /// Label and unit in one line.
    #[must_use]
    pub fn told(&self) -> String {
        match self.unit.as_str() {
            "" => self.label.clone(),
            unit => format!("{} ({unit})", self.label),
        }
    }
}

impl Panel {
    /// The panel of a figure that has no other.
    #[must_use]
    pub fn only(x: Axis, y: Axis) -> Panel {
        Panel { name: String::new(), title: String::new(), x, y }
    }
}

impl Claim {
    /// A claim with a number.
    #[must_use]
    pub fn near(claim: impl Into<String>, paper: f64, measured: f64, tolerance: f64) -> Claim {
        Claim::judged(claim.into(), Some(paper), measured, Test::Near, tolerance)
    }

    /// The claim that something is small, or smaller than something else by what was measured.
    #[must_use]
    pub fn at_most(claim: impl Into<String>, measured: f64, bound: f64) -> Claim {
        Claim::judged(claim.into(), None, measured, Test::AtMost, bound)
    }

    /// The claim that something is large, or larger than something else by what was measured.
    #[must_use]
    pub fn at_least(claim: impl Into<String>, measured: f64, bound: f64) -> Claim {
        Claim::judged(claim.into(), None, measured, Test::AtLeast, bound)
    }

    fn judged(
        claim: String,
        paper: Option<f64>,
        measured: f64,
        test: Test,
        tolerance: f64,
    ) -> Claim {
        let holds = match test {
            Test::Near => paper.is_some_and(|paper| (measured - paper).abs() <= tolerance),
            Test::AtMost => measured <= tolerance,
            Test::AtLeast => measured >= tolerance,
        };
        let verdict = if holds { Verdict::Holds } else { Verdict::Differs };
        Claim { claim, paper, measured, test, tolerance, verdict, why: None }
    }
}

impl Figure {
    /// A figure without points, claims and notes.
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

    /// Adds a measurement to the curve `policy` of `panel`.
    pub fn point(&mut self, panel: &str, policy: &str, x: f64, y: f64) {
        let (panel, policy) = (panel.to_owned(), policy.to_owned());
        self.points.push(Point { panel, policy, x, y });
    }

    /// Adds a claim, if what was measured is enough to judge it.
    pub fn claim(&mut self, claim: impl Into<Option<Claim>>) {
        self.claims.extend(claim.into());
    }

    /// Says why all claims that have `part` in their wording differ, of those that do.
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

    /// The curves of `panel`, in the order in which they first have a point.
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

    /// The curve `policy` of `panel`: x and y of its points.
    pub fn curve<'a>(
        &'a self,
        panel: &'a str,
        policy: &'a str,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let points = self.points.iter();
        let points = points.filter(move |point| point.panel == panel && point.policy == policy);
        points.map(|point| (point.x, point.y))
    }

    /// What was measured of `policy` at exactly `x` in `panel`.
    #[must_use]
    pub fn y(&self, panel: &str, policy: &str, x: f64) -> Option<f64> {
        self.curve(panel, policy).find(|(at, _)| *at == x).map(|(_, y)| y)
    }

    /// Every x in `panel` at which anything was measured, ascending.
    #[must_use]
    pub fn xs(&self, panel: &str) -> Vec<f64> {
        let points = self.points.iter().filter(|point| point.panel == panel);
        let mut xs: Vec<f64> = points.map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }
}
