//! Reading the arguments of a spec: defaults, ranges, choices.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};

use crate::{Spec, SpecError, format_bytes, format_count, parse_bytes, parse_count};

/// The arguments of one spec, after the names of its parameters were found to be known.
///
/// Every reader takes the default to use when the parameter is not given; defaults are trusted and
/// not held against the range. The range may be half open: `1..=64`, `2..`, `0.0..1.0`.
///
/// ```
/// use lsmith_spec::{Params, Spec};
///
/// let spec: Spec = "exploring(k=0, lamda=1.5)".parse()?;
/// let error = Params::new(&spec, &["k", "lambda"], 0).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "unknown parameter `lamda` of `exploring`; did you mean `lambda`?"
/// );
///
/// let spec: Spec = "exploring(k=0)".parse()?;
/// let params = Params::new(&spec, &["k", "lambda"], 0)?;
/// let error = params.count("k", 5, 1..=64).unwrap_err();
/// assert_eq!(error.to_string(), "k = 0 is out of range: expected 1 to 64");
/// assert_eq!(params.real("lambda", 1.2, 1.0..)?, 1.2);
/// # Ok::<(), lsmith_spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    spec: &'a Spec,
}

impl<'a> Params<'a> {
    /// Accepts `spec` if every parameter is one of `known` and at most `positional_max` arguments
    /// have no name.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] with the nearest known parameter, or
    /// [`SpecError::TooManyArguments`].
    pub fn new(spec: &'a Spec, known: &[&str], positional_max: usize) -> Result<Self, SpecError> {
        if let Some((name, _)) = spec.params.iter().find(|(name, _)| !known.contains(&&**name)) {
            return Err(SpecError::unknown("parameter", name, known).within(&spec.name));
        }
        match spec.positional.get(positional_max) {
            None => Ok(Self { spec }),
            Some(found) => Err(SpecError::TooManyArguments {
                spec: spec.name.clone(),
                found: found.clone(),
                expected: positional_max,
            }),
        }
    }

    /// Returns true if the parameter `name` is given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.spec.param(name).is_some()
    }

    /// Returns the argument without a name at `index`; `expected` names it in the error ("a file
    /// name").
    ///
    /// # Errors
    ///
    /// [`SpecError::Missing`] if there are not so many.
    pub fn positional(&self, index: usize, expected: &str) -> Result<&'a str, SpecError> {
        self.spec.positional.get(index).map(String::as_str).ok_or_else(|| SpecError::Missing {
            spec: self.spec.name.clone(),
            expected: expected.to_owned(),
        })
    }

    /// Returns a whole number such as `5` or `100k`.
    ///
    /// # Errors
    ///
    /// If the value is not a count or not in `range`.
    pub fn count(
        &self,
        name: &str,
        default: u64,
        range: impl RangeBounds<u64>,
    ) -> Result<u64, SpecError> {
        Ok(self.count_if_given(name, range)?.unwrap_or(default))
    }

    /// Returns what [`Params::count`] returns, for a parameter without a default: `None` if it is
    /// not given.
    ///
    /// # Errors
    /// If the value is not a count or not in `range`.
    pub fn count_if_given(
        &self,
        name: &str,
        range: impl RangeBounds<u64>,
    ) -> Result<Option<u64>, SpecError> {
        self.ranged(name, parse_count, range, |&bound| format_count(bound))
    }

    /// Returns a size such as `4MiB`, in bytes.
    ///
    /// # Errors
    ///
    /// If the value is not a size or not in `range`.
    pub fn bytes(
        &self,
        name: &str,
        default: u64,
        range: impl RangeBounds<u64>,
    ) -> Result<u64, SpecError> {
        Ok(self.bytes_if_given(name, range)?.unwrap_or(default))
    }

    /// Returns what [`Params::bytes`] returns, for a parameter without a default: `None` if it is
    /// not given.
    ///
    /// # Errors
    /// If the value is not a size or not in `range`.
    pub fn bytes_if_given(
        &self,
        name: &str,
        range: impl RangeBounds<u64>,
    ) -> Result<Option<u64>, SpecError> {
        self.ranged(name, parse_bytes, range, |&bound| format_bytes(bound))
    }

    /// Returns a finite decimal number such as `1.2`.
    ///
    /// # Errors
    /// If the value is not a number or not in `range`.
    pub fn real(
        &self,
        name: &str,
        default: f64,
        range: impl RangeBounds<f64>,
    ) -> Result<f64, SpecError> {
        Ok(self.real_if_given(name, range)?.unwrap_or(default))
    }

    /// Returns what [`Params::real`] returns, for a parameter without a default: `None` if it is
    /// not given.
    ///
    /// # Errors
    /// If the value is not a number or not in `range`.
    pub fn real_if_given(
        &self,
        name: &str,
        range: impl RangeBounds<f64>,
    ) -> Result<Option<f64>, SpecError> {
        self.ranged(name, parse_real, range, f64::to_string)
    }

    /// Returns one of `names`.
    ///
    /// # Errors
    ///
    /// [`SpecError::Unknown`] with the nearest of `names`.
    pub fn choice<'n>(
        &self,
        name: &str,
        default: &'n str,
        names: &[&'n str],
    ) -> Result<&'n str, SpecError> {
        let Some(text) = self.spec.param(name) else { return Ok(default) };
        names
            .iter()
            .find(|&&known| known == text)
            .copied()
            .ok_or_else(|| SpecError::unknown("value", text, names).within(name))
    }

    /// Returns a flag, `true` or `false`.
    ///
    /// # Errors
    /// If the value is neither.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, SpecError> {
        let default = if default { "true" } else { "false" };
        Ok(self.choice(name, default, &["true", "false"])? == "true")
    }

    /// Returns the value as written.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.spec.param(name)
    }

    fn ranged<T: PartialOrd>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, SpecError>,
        range: impl RangeBounds<T>,
        print: impl Fn(&T) -> String,
    ) -> Result<Option<T>, SpecError> {
        let Some(text) = self.spec.param(name) else { return Ok(None) };
        let value = parse(text).map_err(|error| error.of_param(name))?;
        if range.contains(&value) {
            return Ok(Some(value));
        }
        Err(SpecError::OutOfRange {
            param: name.to_owned(),
            found: text.to_owned(),
            expected: range_in_words(
                range.start_bound().map(&print),
                range.end_bound().map(&print),
            ),
        })
    }
}

fn parse_real(text: &str) -> Result<f64, SpecError> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| SpecError::Value {
        param: String::new(),
        found: text.to_owned(),
        expected: "a number such as 0.5 or 10".to_owned(),
    })
}

fn range_in_words(start: Bound<impl Display>, end: Bound<impl Display>) -> String {
    use Bound::{Excluded, Included, Unbounded};
    match (start, end) {
        (Included(start), Included(end)) => format!("{start} to {end}"),
        (Included(start), Excluded(end)) => format!("at least {start} and less than {end}"),
        (Excluded(start), Included(end)) => format!("more than {start} and at most {end}"),
        (Excluded(start), Excluded(end)) => format!("more than {start} and less than {end}"),
        (Included(start), Unbounded) => format!("at least {start}"),
        (Excluded(start), Unbounded) => format!("more than {start}"),
        (Unbounded, Included(end)) => format!("at most {end}"),
        (Unbounded, Excluded(end)) => format!("less than {end}"),
        (Unbounded, Unbounded) => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests;
