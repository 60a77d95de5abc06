//! How the lines of a trace are laid out: in our format, or in another one.

use std::borrow::Cow;

use super::op::TraceOpKind;
use crate::parts::VALUE_BYTES_MAX;

/// The header of our format.
pub(super) const HEADER: &str = "timestamp,op,key,value_size";

/// The same with the field that range deletes need.
const HEADER_WITH_END: &str = "timestamp,op,key,value_size,end";

/// Most times that one line is played.
const TIMES_MAX: u64 = 1_000_000;

/// The layout of all lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Ours, with four fields or five.
    Own(usize),
    /// <https://github.com/twitter/cache-trace>: no header, seven fields.
    Twitter,
    /// Block traces of MSR Cambridge: no header, seven fields.
    Msr,
    /// Traces of CacheLib: the header names the fields.
    CacheLib(Columns),
}

/// The places of the fields that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    key: usize,
    op: usize,
    size: usize,
    times: Option<usize>,
    count: usize,
}

/// What a line says.
pub(super) struct Line<'a> {
    pub(super) kind: TraceOpKind,
    pub(super) key: Cow<'a, str>,
    /// As in a `TraceOp`.
    pub(super) size: u32,
    /// The key behind the range of a range delete.
    pub(super) end: Option<&'a str>,
    /// How often the operation is played.
    pub(super) times: u64,
}

impl Layout {
    /// Returns the layout of a file by its first line. Fails with a message that says what the
    /// file looks like, and what to do.
    pub(super) fn of(first: &[u8]) -> Result<Layout, String> {
        let text = std::str::from_utf8(first).ok().filter(|text| !text.contains(is_binary));
        let Some(text) = text else { return Err(refused_bytes(first)) };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let place = |name| fields.iter().position(|field| *field == name);
        let are_numbers = |places: &[usize]| places.iter().all(|at| is_number(fields[*at]));
        if let (Some(key), Some(op), Some(size)) = (place("key"), place("op"), place("size")) {
            let columns = Columns { key, op, size, times: place("op_count"), count: fields.len() };
            return Ok(Layout::CacheLib(columns));
        }
        match fields.len() {
            4 if text == HEADER => Ok(Layout::Own(4)),
            5 if text == HEADER_WITH_END => Ok(Layout::Own(5)),
            7 if are_numbers(&[0, 2, 4, 5, 6]) && block_op(fields[3]).is_some() => Ok(Layout::Msr),
            7 if are_numbers(&[0, 2, 3, 6]) && cache_op(fields[5]).is_some() => Ok(Layout::Twitter),
            _ => Err(refused_text(text, &fields)),
        }
    }

    /// Returns true if the first line is no operation.
    pub(super) fn has_header(&self) -> bool {
        matches!(self, Layout::Own(_) | Layout::CacheLib(_))
    }

    /// Parses a line. Fails with a message for the malformed field.
    pub(super) fn line<'a>(&self, line: &'a str) -> Result<Line<'a>, String> {
        let fields: Vec<&'a str> = line.split(',').collect();
        let (count, names) = match self {
            Layout::Own(4) => (4, HEADER),
            Layout::Own(_) => (5, HEADER_WITH_END),
            Layout::Twitter => (7, "timestamp,key,key size,value size,client,operation,TTL"),
            Layout::Msr => (7, "timestamp,host,disk,type,offset,size,response time"),
            Layout::CacheLib(columns) => (columns.count, "as in the header"),
        };
        if fields.len() != count {
            return Err(format!("expected {count} fields ({names}), found {}", fields.len()));
        }
        match self {
            Layout::Own(_) => own(&fields),
            Layout::Twitter => Ok(Line {
                kind: cache_op(fields[5]).ok_or_else(|| unknown_op(fields[5]))?,
                size: size("value size", fields[3])?,
                ..read(fields[1].into())
            }),
            Layout::Msr => {
                let offset = fields[4].parse::<u64>();
                let offset = offset.map_err(|_| not_whole("offset", fields[4]))?;
                Ok(Line {
                    kind: block_op(fields[3]).ok_or_else(|| unknown_op(fields[3]))?,
                    size: size("size", fields[5])?,
                    ..read(format!("{}.{}/{offset:020}", fields[1], fields[2]).into())
                })
            }
            Layout::CacheLib(columns) => {
                let op = fields[columns.op];
                let times = columns.times.map_or("1", |at| fields[at]);
                let whole = times.parse().ok().filter(|times| *times <= TIMES_MAX);
                Ok(Line {
                    kind: cache_op(op).ok_or_else(|| unknown_op(op))?,
                    size: size("size", fields[columns.size])?,
                    times: whole.ok_or_else(|| {
                        format!("op_count `{times}` is not a whole number up to {TIMES_MAX}")
                    })?,
                    ..read(fields[columns.key].into())
                })
            }
        }
        .map(Line::cleaned)
    }
}

impl Line<'_> {
    /// Returns the same line, without the size that its kind does not use.
    fn cleaned(self) -> Self {
        let has_size = !matches!(self.kind, TraceOpKind::Get | TraceOpKind::Delete);
        Line { size: if has_size { self.size } else { 0 }, ..self }
    }
}

/// Returns a line that reads `key` once.
fn read(key: Cow<'_, str>) -> Line<'_> {
    Line { kind: TraceOpKind::Get, key, size: 0, end: None, times: 1 }
}

/// Parses the fields of a line in our format.
fn own<'a>(fields: &[&'a str]) -> Result<Line<'a>, String> {
    let (timestamp, op, key, value_size) = (fields[0], fields[1], fields[2], fields[3]);
    let end = fields.get(4).copied().unwrap_or_default();
    if timestamp.parse::<u64>().is_err() {
        return Err(not_whole("timestamp", timestamp));
    }
    let kind = match op {
        "put" => TraceOpKind::Put,
        "delete" => TraceOpKind::Delete,
        "get" => TraceOpKind::Get,
        "combine" => TraceOpKind::Combine,
        "scan" => TraceOpKind::Scan,
        "delete_range" if fields.len() == 5 => TraceOpKind::DeleteRange,
        "delete_range" => return Err(format!("delete_range needs the header {HEADER_WITH_END}")),
        _ => {
            let known = "put, delete, get, combine, scan or delete_range";
            return Err(format!("unknown op `{op}`; expected {known}"));
        }
    };
    if key.is_empty() {
        return Err("the key is empty".to_owned());
    }
    if kind == TraceOpKind::Scan && value_size == "0" {
        return Err("a scan reads at least 1 entry, found value_size 0".to_owned());
    }
    let is_range = kind == TraceOpKind::DeleteRange;
    if !is_range && !end.is_empty() {
        return Err(format!("only delete_range has an end, found `{end}`"));
    }
    let end = is_range.then_some(end);
    Ok(Line { kind, size: size("value_size", value_size)?, end, ..read(key.into()) })
}

/// Returns what an operation of a cache does to a store.
fn cache_op(op: &str) -> Option<TraceOpKind> {
    Some(match op.to_ascii_lowercase().as_str() {
        "get" | "gets" | "get_lease" => TraceOpKind::Get,
        "set" | "add" | "replace" | "cas" | "set_lease" => TraceOpKind::Put,
        "append" | "prepend" | "incr" | "decr" => TraceOpKind::Update,
        "delete" => TraceOpKind::Delete,
        _ => return None,
    })
}

/// Returns what an access to a block does to a store.
fn block_op(op: &str) -> Option<TraceOpKind> {
    match op {
        "Read" => Some(TraceOpKind::Get),
        "Write" => Some(TraceOpKind::Put),
        _ => None,
    }
}

fn size(name: &str, text: &str) -> Result<u32, String> {
    let parsed = text.parse::<u32>().ok().filter(|&size| u64::from(size) <= VALUE_BYTES_MAX);
    parsed.ok_or_else(|| format!("{name} `{text}` is not a whole number up to {VALUE_BYTES_MAX}"))
}

fn unknown_op(op: &str) -> String {
    format!("unknown op `{op}`")
}

fn not_whole(name: &str, text: &str) -> String {
    format!("{name} `{text}` is not a whole number")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_binary(letter: char) -> bool {
    letter.is_control() && letter != '\t'
}

/// What to do with a file in a layout that is not read.
const CONVERT: &str = "write it as lines of";

/// Says what a first line that is no text looks like.
fn refused_bytes(first: &[u8]) -> String {
    let marks: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "a file that gzip has compressed twice, or without its end"),
        (b"\x28\xb5\x2f\xfd", "a file that zstd has compressed, which this program cannot read"),
        (b"\xfd7zXZ", "a file that xz has compressed: decompress it first"),
        (b"BZh", "a file that bzip2 has compressed: decompress it first"),
    ];
    let rocksdb = b"feedcafedeadbeef";
    if let Some((_, what)) = marks.iter().find(|(mark, _)| first.starts_with(mark)) {
        return format!("not a trace: it looks like {what}");
    }
    if first.windows(rocksdb.len()).any(|part| part == rocksdb) {
        return format!(
            "not a trace: it looks like a binary trace of RocksDB: print it with `trace_analyzer \
             --convert_to_human_readable_trace`, and {CONVERT} {HEADER}"
        );
    }
    format!(
        "not a trace: it is no text. libCacheSim's oracleGeneral and other binary traces have 24 \
         bytes per request and do not say what was written: print them, and {CONVERT} {HEADER}"
    )
}

/// Says what a first line of text looks like.
fn refused_text(text: &str, fields: &[&str]) -> String {
    let spaced: Vec<&str> = text.split_whitespace().collect();
    let is_key = |text: &str| text.trim_start_matches("0x").chars().all(|c| c.is_ascii_hexdigit());
    let of_rocksdb = spaced.len() == 5 && is_key(spaced[0]);
    let names = text.to_ascii_lowercase();
    let has_object = ["obj", "object", "block_id"].iter().any(|name| names.contains(name));
    let numbers = fields.iter().filter(|field| is_number(field)).count();
    let what = if of_rocksdb && spaced[1..].iter().all(|field| is_number(field)) {
        "what trace_analyzer of RocksDB prints (key, type, column family, value size, time; type 0 \
         is get, 1 put, 2 delete)"
    } else if fields.len() >= 15 && (numbers >= 5 || has_object) {
        "a trace of RocksDB's block cache, whose keys are blocks; trace the operations instead, \
         with `StartTrace`"
    } else if (2..=6).contains(&fields.len()) && (has_object || numbers == fields.len()) {
        "requests of a cache (time, object, size), as in libCacheSim: they do not say what was \
         written. If a miss is a write, say so"
    } else {
        let found: String = text.chars().take(60).collect();
        return format!("not a trace: expected the header `{HEADER}`, found `{found}`");
    };
    format!("not a trace: it looks like {what}; {CONVERT} {HEADER}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_known_by_their_first_line() {
        let of = |text: &str| Layout::of(text.as_bytes());
        assert_eq!(of(HEADER), Ok(Layout::Own(4)));
        assert_eq!(of("\u{feff}timestamp,op,key,value_size,end"), Ok(Layout::Own(5)));
        assert_eq!(of("0,q:q:1:8WTfjZU14ee,17,213,4,get,0"), Ok(Layout::Twitter));
        assert_eq!(of("128166372003061629,hm,1,Read,383496192,32768,413"), Ok(Layout::Msr));
        assert!(matches!(of("key,op,size,op_count,key_size"), Ok(Layout::CacheLib(_))));
        assert!(matches!(of("op_time,key,key_size,op,op_count,size,ttl"), Ok(Layout::CacheLib(_))));
    }

    #[test]
    fn what_is_not_read_is_named_with_a_way_out() {
        for (text, what) in [
            (&b"time,object,size,next_access_vtime"[..], "libCacheSim"),
            (b"1,5,4096", "libCacheSim"),
            (b"0x6B6579 1 0 100 1577836800", "trace_analyzer"),
            (b"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "block cache"),
            (b"\x01\0\0\0\x02", "oracleGeneral"),
            (b"\x28\xb5\x2f\xfd\x24", "zstd"),
            (b"\xff0123 feedcafedeadbeef\tTrace Version", "RocksDB"),
        ] {
            let message = Layout::of(text).unwrap_err();
            assert!(message.starts_with("not a trace: ") && message.contains(what), "{message}");
        }
        assert_eq!(
            Layout::of(b"a,b").unwrap_err(),
            format!("not a trace: expected the header `{HEADER}`, found `a,b`")
        );
    }

    #[test]
    fn blocks_have_keys_in_the_order_of_the_disk() {
        let line = Layout::Msr.line("128166372003061629,hm,1,Write,383496192,32768,413").unwrap();
        assert_eq!(line.key, "hm.1/00000000000383496192");
        assert_eq!((line.kind, line.size), (TraceOpKind::Put, 32768));
    }
}
