//! The sizes at which memtables are sealed, one after the other.

use lsmith_spec::{Params, Spec, SpecError, format_count, parse_bytes};
use std::sync::Arc;

use crate::inputs::{Inputs, failed, read_all};
use crate::{Rng, WorkloadError};

/// The names of all kinds.
const NAMES: [&str; 3] = ["constant", "lognormal", "file"];

/// The stream of the seed from which sizes are drawn.
const STREAM: u64 = 0xf1_0005;

/// The least mean, as a share of a full memtable.
const MEAN_MIN: f64 = 1e-6;

/// The greatest `sigma`: with it, one memtable of ten is five times as large as the mean.
const SIGMA_MAX: f64 = 3.0;

/// The logical bytes at which each memtable is sealed, by its index. A timer, a full log or a
/// shortage of memory flush memtables before they are full. A full memtable is always sealed.
///
/// | spelling | sizes |
/// |---|---|
/// | `constant` | every memtable is sealed when it is full |
/// | `lognormal(mean=0.25, sigma=0.5, seed=1)` | random; `mean` is a share of a full memtable, and `sigma` the standard deviation of the logarithm of the size |
/// | `file(NAME)` | one size per line, such as `3MiB`; after the last line the first comes again |
///
/// ```
/// use lsmith_workload::{FlushSizes, NoInputs};
///
/// let sizes = FlushSizes::from_spec(&"lognormal(mean=0.25)".parse()?, &NoInputs)?;
/// let bytes: Vec<u64> = (0..100_000).map(|flush| sizes.bytes(flush, 4000)).collect();
/// let mean = bytes.iter().sum::<u64>() as f64 / 1e5;
/// assert!((mean - 1000.0).abs() < 10.0);
/// assert_eq!(sizes.bytes(7, 4000), bytes[7], "the size of a memtable depends on its number only");
/// # Ok::<(), lsmith_workload::WorkloadError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FlushSizes {
    spec: Spec,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Constant,
    Lognormal {
        mean: f64,
        sigma: f64,
        seed: u64,
    },
    /// At least one size.
    Listed(Arc<[u64]>),
}

impl Default for FlushSizes {
    fn default() -> Self {
        Self { spec: Spec::bare("constant"), kind: Kind::Constant }
    }
}

impl FlushSizes {
    /// Builds the sizes that `spec` names. Reads a file through `inputs`.
    ///
    /// # Errors
    /// Fails if the name or a parameter is unknown or out of range, or a file cannot be read, has
    /// no sizes or a line that is no size.
    pub fn from_spec(spec: &Spec, inputs: &dyn Inputs) -> Result<Self, WorkloadError> {
        let (spec, kind) = match spec.name.as_str() {
            "constant" => {
                Params::new(spec, &[], 0)?;
                (Spec::bare("constant"), Kind::Constant)
            }
            "lognormal" => {
                let params = Params::new(spec, &["mean", "sigma", "seed"], 0)?;
                let mean = params.real("mean", 0.25, MEAN_MIN..=1.0)?;
                let sigma = params.real("sigma", 0.5, 0.0..=SIGMA_MAX)?;
                let seed = params.count("seed", 1, ..)?;
                let spec = Spec::bare("lognormal").with("mean", mean).with("sigma", sigma);
                (spec.with("seed", format_count(seed)), Kind::Lognormal { mean, sigma, seed })
            }
            "file" => {
                let params = Params::new(spec, &[], 1)?;
                let file = params.positional(0, "a file name, as in file(NAME)")?;
                let mut known = Spec::bare("file");
                known.positional.push(file.to_owned());
                (known, Kind::Listed(read(file, inputs)?))
            }
            other => return Err(SpecError::unknown("flush sizes", other, &NAMES).into()),
        };
        Ok(Self { spec, kind })
    }

    /// Returns the given sizes in bytes, over and over, under the name `name`. `None` if there are
    /// no sizes, or if one is 0.
    #[must_use]
    pub fn listed(name: &str, sizes: &[u64]) -> Option<Self> {
        let is_legal = !sizes.is_empty() && sizes.iter().all(|bytes| *bytes > 0);
        is_legal.then(|| Self { spec: Spec::bare(name), kind: Kind::Listed(sizes.into()) })
    }

    /// Returns the canonical spelling, with defaults filled in.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns true if every memtable is sealed when it is full.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.kind == Kind::Constant
    }

    /// Returns the logical bytes at which memtable number `flush`, counted from 0, is sealed: from
    /// 1 to `memtable_bytes`, which fills it.
    #[must_use]
    pub fn bytes(&self, flush: u64, memtable_bytes: u64) -> u64 {
        let bytes = match &self.kind {
            Kind::Constant => memtable_bytes,
            Kind::Lognormal { mean, sigma, seed } => {
                let mut rng = Rng::new(*seed, STREAM ^ flush);
                // A normal draw by the method of Box and Muller.
                let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
                let draw = radius * (std::f64::consts::TAU * rng.unit()).cos();
                let share = mean * (sigma * draw - sigma * sigma / 2.0).exp();
                (share * memtable_bytes as f64) as u64
            }
            Kind::Listed(sizes) => sizes[(flush % sizes.len() as u64) as usize],
        };
        bytes.min(memtable_bytes).max(1)
    }
}

/// Reads one size per line. Empty lines, and lines that begin with `#`, are left out.
fn read(file: &str, inputs: &dyn Inputs) -> Result<Arc<[u64]>, WorkloadError> {
    let failed = |message: String| failed(file, message);
    let text = read_all(inputs, file)?;
    let text = String::from_utf8(text)
        .map_err(|_| failed("not a text of sizes: expected UTF-8".to_owned()))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let size = |(line, text): (u64, &str)| {
        let failed = |message| WorkloadError::Line { file: file.to_owned(), line, message };
        match parse_bytes(text) {
            Ok(0) => Err(failed("expected at least 1B".to_owned())),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(failed(error.to_string())),
        }
    };
    let sizes: Arc<[u64]> = lines.map(size).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        return Err(failed("no sizes: expected one per line, such as 3MiB".to_owned()));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    struct Text(&'static str);

    impl Inputs for Text {
        fn open<'a>(&'a self, _: &str) -> Result<Box<dyn BufRead + 'a>, String> {
            Ok(Box::new(self.0.as_bytes()))
        }
    }

    fn sizes(spec: &str, text: &'static str) -> Result<FlushSizes, String> {
        let spec = spec.parse().unwrap();
        FlushSizes::from_spec(&spec, &Text(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn lognormal_sizes_have_mean_and_spread() {
        let sizes = sizes("lognormal(mean=0.001, sigma=0.7)", "").unwrap();
        assert_eq!(sizes.spec().to_string(), "lognormal(mean=0.001, sigma=0.7, seed=1)");
        let logs: Vec<f64> =
            (0..100_000).map(|flush| (sizes.bytes(flush, 1 << 40) as f64).ln()).collect();
        let mean = logs.iter().sum::<f64>() / 1e5;
        let spread = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
        assert!((spread - 0.7).abs() < 0.01, "{spread}");
        let expected = (f64::from(1 << 20) * f64::from(1 << 20) * 0.001).ln() - 0.7 * 0.7 / 2.0;
        assert!((mean - expected).abs() < 0.01, "{mean}, not {expected}");
        let other = FlushSizes::from_spec(&"lognormal(seed=2)".parse().unwrap(), &Text(""));
        let lognormal = self::sizes("lognormal", "").unwrap();
        assert_ne!(other.unwrap().bytes(0, 1 << 30), lognormal.bytes(0, 1 << 30));
        assert_eq!(self::sizes("lognormal(sigma=0)", "").unwrap().bytes(3, 1000), 250);
        let wide = self::sizes("lognormal(mean=1, sigma=3)", "").unwrap();
        assert!((0..1000).all(|flush| (1..=100).contains(&wide.bytes(flush, 100))));
    }

    #[test]
    fn files_are_read_in_turn() {
        let sizes = sizes("file(sizes.txt)", "# night\n1MiB\n\n  300 kB\n5000\n").unwrap();
        assert_eq!(sizes.spec().to_string(), "file(sizes.txt)");
        let bytes: Vec<u64> = (0..5).map(|flush| sizes.bytes(flush, 1 << 19)).collect();
        assert_eq!(bytes, [1 << 19, 300_000, 5000, 1 << 19, 300_000], "a full one is sealed");
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (spec, text, message) in [
            ("lognormall", "", "did you mean `lognormal`?"),
            ("lognormal(sigma=4)", "", "sigma = 4 is out of range"),
            ("constant(sigma=1)", "", "sigma"),
            ("file", "", "a file name, as in file(NAME)"),
            ("file(a)", "\n# none\n", "a: no sizes: expected one per line"),
            ("file(a)", "1MiB\nmuch\n", "a, line 2: "),
            ("file(a)", "0\n", "a, line 1: expected at least 1B"),
        ] {
            let found = sizes(spec, text).unwrap_err();
            assert!(found.contains(message), "{spec}: {found}");
        }
    }
}
