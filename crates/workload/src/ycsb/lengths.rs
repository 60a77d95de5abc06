//! Distributions of the length of a record.

use std::ops::RangeInclusive;

use super::properties::Properties;
use super::zipfian::{THETA, Zipfian};
use crate::inputs::{Inputs, failed, read_all};
use crate::parts::{KEYS_MAX, VALUE_BYTES_MAX};
use crate::{Rng, WorkloadError};

/// The greatest number of fields per record for which the length of each field is drawn alone.
const DRAWN_FIELDS_MAX: u64 = 10_000;

/// The lengths of records.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// All fields of each record together.
    Constant(u32),
    /// The length of each of `fields` fields is drawn.
    Drawn { fields: u64, lengths: Lengths },
}

/// The distribution of the length of a field.
#[derive(Clone, Debug)]
pub(super) enum Lengths {
    /// Any length of a range with equal chance.
    Uniform(RangeInclusive<u64>),
    /// Zipf distributed, the shortest the likeliest.
    Zipfian(u64, Zipfian),
    /// Lengths in ascending order, each with the sum of the counts up to and with its own.
    Histogram(Vec<(u64, u64)>),
}

impl Values {
    /// Reads the properties of lengths. A histogram is a file of `inputs`.
    pub(super) fn read(file: &Properties, inputs: &dyn Inputs) -> Result<Self, WorkloadError> {
        let known = ["constant", "uniform", "zipfian", "histogram"];
        let kind = file.choice("fieldlengthdistribution", "constant", &known)?;
        let fields_max = if kind == "constant" { KEYS_MAX } else { DRAWN_FIELDS_MAX };
        let fields = file.count("fieldcount", 1..=fields_max)?.unwrap_or(10);
        let longest = file.count("fieldlength", 0..=VALUE_BYTES_MAX)?.unwrap_or(100);
        let shortest = file.count("minfieldlength", 0..=longest)?.unwrap_or(longest.min(1));
        let lengths = match kind {
            "histogram" => Some(histogram(file, inputs)?),
            "uniform" => Some(Lengths::Uniform(shortest..=longest)),
            "zipfian" => {
                let ranks = Zipfian::new(longest - shortest + 1, THETA);
                Some(Lengths::Zipfian(shortest, ranks))
            }
            _ => None,
        };
        let longest = lengths.as_ref().map_or(longest, |lengths| lengths.longest(longest));
        let bytes = fields.saturating_mul(longest);
        if bytes > VALUE_BYTES_MAX {
            let message = format!("a record of {bytes} bytes is longer than {VALUE_BYTES_MAX}");
            return Err(file.refuse_all(message));
        }
        Ok(match lengths {
            Some(lengths) => Self::Drawn { fields, lengths },
            None => Self::Constant(u32::try_from(bytes).expect("values are far below 2^32 bytes")),
        })
    }

    /// Draws the length of a record.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Constant(bytes) => *bytes,
            Self::Drawn { fields, lengths } => {
                let bytes: u64 = (0..*fields).map(|_| lengths.draw(rng)).sum();
                u32::try_from(bytes).expect("the longest record is far below 2^32 bytes")
            }
        }
    }
}

impl Lengths {
    /// Returns the longest length, `longest` unless a histogram says otherwise.
    fn longest(&self, longest: u64) -> u64 {
        match self {
            Self::Histogram(counts) => counts.last().map_or(0, |(length, _)| *length),
            Self::Uniform(_) | Self::Zipfian(..) => longest,
        }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform(range) => range.start() + rng.below(range.end() - range.start() + 1),
            Self::Zipfian(shortest, ranks) => shortest + ranks.draw(rng),
            Self::Histogram(counts) => {
                let drawn = rng.below(counts.last().map_or(1, |(_, sum)| *sum));
                counts[counts.partition_point(|(_, sum)| *sum <= drawn)].0
            }
        }
    }
}

/// Reads the file of a histogram: a line `BlockSize` with a number, then a line for each bucket
/// with its number and its count. The lengths of a bucket are its upper end.
fn histogram(file: &Properties, inputs: &dyn Inputs) -> Result<Lengths, WorkloadError> {
    let (name, _) = file.text("fieldlengthhistogram").unwrap_or(("hist.txt", 0));
    let text = read_all(inputs, name)?;
    let text = String::from_utf8_lossy(&text);
    let mut rows = Vec::new();
    for (line, at) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let row = line.trim().split_once(char::is_whitespace);
        let bucket = row.filter(|_| at > 1).map(|(bucket, _)| bucket.parse().ok());
        let bucket = bucket.unwrap_or((line.starts_with("BlockSize") && at == 1).then_some(0));
        let count = row.and_then(|(_, count)| count.trim().parse::<u64>().ok());
        let (Some(bucket), Some(count)) = (bucket, count.filter(|count| *count <= KEYS_MAX)) else {
            let message = "expected `BlockSize` and a number first, then two numbers per line";
            let (file, message) = (name.to_owned(), format!("{message}, found `{line}`"));
            return Err(WorkloadError::Line { file, line: at, message });
        };
        rows.push((bucket, count));
    }
    let (_, block) = rows.first().copied().unwrap_or_default();
    let mut buckets: Vec<(u64, u64)> = rows.into_iter().skip(1).collect();
    buckets.retain(|(_, count)| *count > 0);
    buckets.sort_unstable();
    if buckets.is_empty() || block == 0 {
        return Err(failed(name, "expected a histogram with a count above 0".to_owned()));
    }
    let mut sum = 0_u64;
    let counts = buckets.into_iter().map(|(bucket, count)| {
        sum = sum.saturating_add(count);
        (block.saturating_mul(bucket.saturating_add(1)), sum)
    });
    Ok(Lengths::Histogram(counts.collect()))
}
