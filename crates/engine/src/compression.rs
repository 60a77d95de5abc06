//! The compression of a keyspace's tables, level by level, and of its value files.

use lsmith_spec::{Params, Spec, SpecError, nearest};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::Codec;
use std::fmt;

/// The names of all codecs.
const NAMES: [&str; 3] = ["none", "lz4", "zstd"];

/// The compression level of Zstandard if none is chosen.
const ZSTD_LEVEL: u8 = 3;

/// A codec for each level of the tree, youngest level first. The last codec also serves all levels
/// below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compression(Vec<Codec>);

impl Default for Compression {
    fn default() -> Compression {
        Compression(vec![Codec::None])
    }
}

impl Compression {
    /// Parses a list such as `none,lz4,zstd(level=9)`.
    ///
    /// # Errors
    /// Fails with `InvalidArgument` if a codec does not exist. The message suggests a similar name.
    pub(crate) fn parse(text: &str) -> Result<Compression> {
        let parsed = text.split(',').map(|name| codec(name.trim()));
        let codecs: std::result::Result<Vec<Codec>, String> = parsed.collect();
        codecs.map(Compression).map_err(|message| {
            Error::new(ErrorKind::InvalidArgument, format!("compression `{text}`: {message}"))
        })
    }

    /// Returns the codec of tables that are written to `level`.
    pub(crate) fn of_level(&self, level: usize) -> Codec {
        self.0.get(level).or(self.0.last()).copied().unwrap_or_default()
    }

    /// Returns the codec of values in value files: the last one. Merges do not write them again, so
    /// they lie with what was written long ago, on whatever level they were written.
    pub(crate) fn of_values(&self) -> Codec {
        self.0.last().copied().unwrap_or_default()
    }

    /// Returns true if no level is compressed.
    pub(crate) fn is_none(&self) -> bool {
        self.0.iter().all(|codec| *codec == Codec::None)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, codec) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            match codec {
                Codec::None => f.write_str("none")?,
                Codec::Lz4 => f.write_str("lz4")?,
                Codec::Zstd { level: ZSTD_LEVEL } => f.write_str("zstd")?,
                Codec::Zstd { level } => write!(f, "zstd(level={level})")?,
            }
        }
        Ok(())
    }
}

/// Returns the names of the codecs that this build has.
fn built_names() -> String {
    let built = [("none", Codec::None), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd { level: 1 })];
    let built = built.iter().filter(|(_, codec)| codec.is_built());
    built.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Checks that [`Builder::compression`](crate::Builder::compression) accepts `codecs`.
///
/// # Errors
/// Fails with `InvalidArgument` if a codec does not exist, or if this build lacks it. The message
/// suggests a similar name.
pub fn check_compression(codecs: &str) -> Result<()> {
    Compression::parse(codecs).map(drop)
}

fn codec(text: &str) -> std::result::Result<Codec, String> {
    let message = |error: SpecError| error.to_string();
    let spec: Spec = text.parse().map_err(message)?;
    let known: &[&str] = if spec.name == "zstd" { &["level"] } else { &[] };
    let params = || Params::new(&spec, known, 0).map_err(message);
    let built = |codec: Codec| match codec.is_built() {
        true => Ok(codec),
        false => Err(format!(
            "this build has no `{0}`: the cargo feature `{0}` is off, and the only codecs are {1}",
            spec.name,
            built_names()
        )),
    };
    match &*spec.name {
        "none" => params().map(|_| Codec::None),
        "lz4" => params().and_then(|_| built(Codec::Lz4)),
        "zstd" => {
            let level = params()?.count("level", u64::from(ZSTD_LEVEL), 1..=19).map_err(message)?;
            built(Codec::Zstd { level: level as u8 })
        }
        other => Err(match nearest(other, &NAMES) {
            Some(near) => format!("there is no `{other}`; did you mean `{near}`?"),
            None => format!("there is no `{other}`, only none, lz4 and zstd(level=1..19)"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_that_are_not_built_are_refused() {
        for (name, is_built) in [("lz4", cfg!(feature = "lz4")), ("zstd", cfg!(feature = "zstd"))] {
            let parsed = Compression::parse(name);
            assert_eq!(parsed.is_ok(), is_built, "{name}");
            if let Err(error) = parsed {
                let feature = format!("the cargo feature `{name}` is off");
                assert!(error.to_string().contains(&feature), "{error}");
            }
        }
    }

    #[cfg(all(feature = "lz4", feature = "zstd"))]
    #[test]
    fn last_codec_serves_all_levels_below() {
        let list = Compression::parse("none, lz4,zstd( level=9 )").unwrap();
        assert_eq!(list.to_string(), "none,lz4,zstd(level=9)");
        let levels = [0, 1, 2, 3, 60].map(|level| list.of_level(level));
        let zstd = Codec::Zstd { level: 9 };
        assert_eq!(levels, [Codec::None, Codec::Lz4, zstd, zstd, zstd]);
        assert_eq!(list.of_values(), zstd);
        assert_eq!(Compression::parse("zstd(level=3)").unwrap().to_string(), "zstd");
        assert!(Compression::parse("none,none").unwrap().is_none() && !list.is_none());
    }

    #[cfg(all(feature = "lz4", feature = "zstd"))]
    #[test]
    fn errors_name_what_is_wrong() {
        for (text, message) in [
            ("zst", "compression `zst`: there is no `zst`; did you mean `zstd`?"),
            (
                "none,snappy",
                "compression `none,snappy`: there is no `snappy`, only none, lz4 and \
                 zstd(level=1..19)",
            ),
            (
                "zstd(level=99)",
                "compression `zstd(level=99)`: level = 99 is out of range: expected 1 to 19",
            ),
        ] {
            let error = Compression::parse(text).unwrap_err();
            assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::InvalidArgument, message));
        }
        for text in ["", "none,", "lz4(level=3)", "zstd(9)"] {
            assert!(Compression::parse(text).is_err(), "{text}");
        }
    }
}
