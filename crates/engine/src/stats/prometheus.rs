//! Text in the exposition format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// The text of metrics. A metric is begun once, and has all its values behind that.
#[derive(Debug, Default)]
pub(crate) struct MetricsText {
    text: String,
}

impl MetricsText {
    /// Begins a metric that only grows. Its name ends with `_total`.
    pub(crate) fn counter(&mut self, name: &str, help: &str) {
        self.begin(name, help, "counter");
    }

    /// Begins a metric that goes up and down.
    pub(crate) fn gauge(&mut self, name: &str, help: &str) {
        self.begin(name, help, "gauge");
    }

    /// Begins a metric with quantiles, a sum and a count.
    pub(crate) fn summary(&mut self, name: &str, help: &str) {
        self.begin(name, help, "summary");
    }

    fn begin(&mut self, name: &str, help: &str, kind: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', " ");
        self.line(format_args!("# HELP lsmith_{name} {help}"));
        self.line(format_args!("# TYPE lsmith_{name} {kind}"));
    }

    /// Adds a value of the metric `name`, which was begun. A label is a name and a value.
    pub(crate) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        match labels.is_empty() {
            true => self.line(format_args!("lsmith_{name} {value}")),
            false => self.line(format_args!("lsmith_{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string has room");
    }
}

/// Returns the value of a label as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_the_format_says() {
        let mut text = MetricsText::default();
        text.counter("merges_total", "Merges.\nOf \\ all.");
        text.value("merges_total", &[], 7);
        text.gauge("pressure", "Pressure.");
        text.value("pressure", &[("keyspace", "a\"b\\c\nd"), ("level", "0")], 0.25);
        let expected = "\
# HELP lsmith_merges_total Merges. Of \\\\ all.
# TYPE lsmith_merges_total counter
lsmith_merges_total 7
# HELP lsmith_pressure Pressure.
# TYPE lsmith_pressure gauge
lsmith_pressure{keyspace=\"a\\\"b\\\\c\\nd\",level=\"0\"} 0.25
";
        assert_eq!(text.finish(), expected);
    }
}
