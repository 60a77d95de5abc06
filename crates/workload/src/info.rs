//! Descriptions of the kinds of workloads, for people. Specs are checked against the same tables.

use lsmith_spec::{Params, Spec, SpecError};

/// A kind of workload that a spec can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// The name in the spec.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from; empty for workloads of lsmith's own.
    pub source: &'static str,
    /// The argument without a name, if the workload needs one.
    pub argument: Option<&'static str>,
    /// The parameters, without [`WorkloadInfo::COMMON`].
    pub params: &'static [WorkloadParam],
    /// A spec that runs within seconds.
    pub example: &'static str,
}

/// A parameter of a workload, described for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadParam {
    /// The name in the spec.
    pub name: &'static str,
    /// The kind of value.
    pub unit: ParamUnit,
    /// The default as written in a spec. `None` if there is none, or if `meaning` says what it
    /// depends on.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamUnit {
    /// A whole number such as `5`, `100k` or `2M`.
    Count,
    /// A size such as `100B`, `64KiB` or `4MiB`.
    Bytes,
    /// A number without a unit, such as `0.5`.
    Number,
    /// One of the words that the meaning lists.
    Word,
}

impl ParamUnit {
    /// Returns the name of the unit: `count`, `bytes`, `number` or `word`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Number => "number",
            Self::Word => "word",
        }
    }
}

impl WorkloadInfo {
    /// The parameters that every workload takes besides its own.
    pub const COMMON: &[WorkloadParam] = &[
        param(
            "bytes",
            ParamUnit::Bytes,
            "stops once that many bytes of keys and values are written",
        ),
        param("flushes", ParamUnit::Count, "stops once that many memtables are sealed"),
        param(
            "key_bytes",
            ParamUnit::Bytes,
            "the length to which shorter keys are filled up with zero bytes, 0B to 65534B; 0B if \
             left out",
        ),
        param(
            "compressible",
            ParamUnit::Number,
            "the share of each value, 0 to 1, that is zeros, which codecs store in next to \
             nothing; 0 if left out",
        ),
        param(
            "expire",
            ParamUnit::Count,
            "the number of writes after which an entry expires, or `recorded` for the times to \
             live in the file of a trace; entries stay if left out",
        ),
        param("seed", ParamUnit::Count, "the seed of all random choices").or("1"),
    ];

    /// Checks the names of the arguments of `spec`.
    pub(crate) fn params<'a>(&self, spec: &'a Spec) -> Result<Params<'a>, SpecError> {
        let params = self.params.iter().chain(Self::COMMON);
        let known: Vec<&str> = params.map(|param| param.name).collect();
        Params::new(spec, &known, usize::from(self.argument.is_some()))
    }
}

impl WorkloadParam {
    /// Returns the parameter with a default.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
}

/// Returns a parameter without a default.
pub(crate) const fn param(
    name: &'static str,
    unit: ParamUnit,
    meaning: &'static str,
) -> WorkloadParam {
    WorkloadParam { name, unit, default: None, meaning }
}

/// The parameter `value`.
pub(crate) const VALUE: WorkloadParam =
    param("value", ParamUnit::Bytes, "the length of each value, 0B to 256MiB").or("1kB");
