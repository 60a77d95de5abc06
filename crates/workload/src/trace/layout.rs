//! How the lines of a trace are laid out: in our format, or in another one.

use std::borrow::Cow;

use super::format::TextFormat;
use super::op::TraceOpKind;
use super::oracle::number_key;
use super::record::{Record, Stamp, is_number, not_whole, size};
use super::{recording, rocksdb, ycsb_lines};

/// The header of our format.
pub(super) const HEADER: &str = "timestamp,op,key,value_size";

/// The same with the field that range deletes need.
const HEADER_WITH_END: &str = "timestamp,op,key,value_size,end";

/// Most times that one line is played.
const TIMES_MAX: u64 = 1_000_000;

/// The layout of all lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Fields with commas between them.
    Table(Table),
    /// Queries of RocksDB, printed.
    RocksDb,
    /// Operations that YCSB has printed, among other lines.
    Ycsb,
    /// What a store of ours has recorded.
    Recording,
}

/// The layout of lines of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Ours, with four fields or five.
    Own(usize),
    /// Twitter's: no header, seven fields.
    Twitter,
    /// Block traces of MSR Cambridge: no header, seven fields.
    Msr,
    /// Traces of CacheLib: the header names the fields.
    CacheLib(Columns),
    /// Text of libCacheSim: a header names the fields, or time, object and size come first.
    LibCacheSim { columns: Columns, has_header: bool },
}

/// The places of the fields that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    key: usize,
    op: Option<usize>,
    size: usize,
    times: Option<usize>,
    /// The time, and the life.
    stamp: Option<(usize, usize)>,
    count: usize,
}

impl Layout {
    /// Returns the layout of a file by its first line, which must fit `format` if one is given.
    /// Fails with a message that says what the file looks like, and what to do.
    pub(super) fn of(first: &[u8], format: Option<TextFormat>) -> Result<Layout, String> {
        let text = std::str::from_utf8(first).ok().filter(|text| !text.contains(is_binary));
        let Some(text) = text else { return Err(refused_bytes(first)) };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let fields: Vec<&str> = text.trim_start_matches('#').split(',').map(str::trim).collect();
        let found: String = text.chars().take(60).collect();
        let or = |columns: Option<Table>, expected: &str| {
            let message = || format!("expected {expected}, found `{found}`");
            columns.map(Layout::Table).ok_or_else(message)
        };
        match format {
            None => Self::of_line(text, &fields).ok_or_else(|| refused_text(text, &fields)),
            Some(TextFormat::Lsmith) => {
                or(Table::own(text), &format!("the header `{HEADER}`, with `,end` for ranges"))
            }
            Some(TextFormat::Twitter) => Ok(Layout::Table(Table::Twitter)),
            Some(TextFormat::Msr) => Ok(Layout::Table(Table::Msr)),
            Some(TextFormat::CacheLib) => {
                let columns = Columns::of_cachelib(&fields).map(Table::CacheLib);
                or(columns, "a header with the fields key, op and size")
            }
            Some(TextFormat::LibCacheSim) => or(
                Table::of_libcachesim(&fields),
                "a header with the fields object and size, or a line of time, object and size",
            ),
            Some(TextFormat::RocksDb) => Ok(Layout::RocksDb),
            Some(TextFormat::Ycsb) => Ok(Layout::Ycsb),
            Some(TextFormat::Recording) => Ok(Layout::Recording),
        }
    }

    /// Returns the layout of a file by its first line alone.
    fn of_line(text: &str, fields: &[&str]) -> Option<Layout> {
        if recording::starts(text) {
            return Some(Layout::Recording);
        }
        if rocksdb::is_line(text) {
            return Some(Layout::RocksDb);
        }
        if ycsb_lines::starts(text) {
            return Some(Layout::Ycsb);
        }
        let are_numbers = |places: &[usize]| places.iter().all(|at| is_number(fields[*at]));
        let is_msr = || are_numbers(&[0, 2, 4, 5, 6]) && block_op(fields[3]).is_some();
        let is_twitter = || are_numbers(&[0, 2, 3, 6]) && cache_op(fields[5]).is_some();
        let table = if let Some(columns) = Columns::of_cachelib(fields) {
            Table::CacheLib(columns)
        } else if let Some(columns) = Columns::of_libcachesim(fields) {
            Table::LibCacheSim { columns, has_header: true }
        } else if fields.len() == 7 && is_msr() {
            Table::Msr
        } else if fields.len() == 7 && is_twitter() {
            Table::Twitter
        } else {
            Table::own(text)?
        };
        Some(Layout::Table(table))
    }

    /// Returns true if the first line is no operation.
    pub(super) fn has_header(&self) -> bool {
        match self {
            Layout::Table(Table::Own(_) | Table::CacheLib(_)) | Layout::Recording => true,
            Layout::Table(Table::LibCacheSim { has_header, .. }) => *has_header,
            Layout::Table(Table::Twitter | Table::Msr) | Layout::RocksDb | Layout::Ycsb => false,
        }
    }

    /// Parses a line; `None` if it shows no operation that is played. Fails with a message for the
    /// malformed field.
    pub(super) fn line<'a>(
        &self,
        line: &'a str,
        choice: &mut rocksdb::Choice,
    ) -> Result<Option<Record<'a>>, String> {
        match self {
            Layout::Table(table) => table.line(line).map(Some),
            Layout::RocksDb => rocksdb::line(line, choice),
            Layout::Ycsb => ycsb_lines::operation(line),
            Layout::Recording => unreachable!("recordings are read part by part"),
        }
    }
}

impl Table {
    /// Returns our layout, if `text` is its header.
    fn own(text: &str) -> Option<Table> {
        match text {
            HEADER => Some(Table::Own(4)),
            HEADER_WITH_END => Some(Table::Own(5)),
            _ => None,
        }
    }

    /// Returns the layout of text of libCacheSim by its first line, with a header or without.
    fn of_libcachesim(fields: &[&str]) -> Option<Table> {
        let plain = Columns { key: 1, size: 2, count: fields.len(), ..Columns::default() };
        let is_plain = fields.len() >= 3 && is_number(fields[0]) && is_number(fields[2]);
        let header = Columns::of_libcachesim(fields).map(|columns| (columns, true));
        let (columns, has_header) = header.or(is_plain.then_some((plain, false)))?;
        Some(Table::LibCacheSim { columns, has_header })
    }

    fn line<'a>(&self, line: &'a str) -> Result<Record<'a>, String> {
        let fields: Vec<&'a str> = line.split(',').collect();
        let (count, names) = match self {
            Table::Own(4) => (4, HEADER),
            Table::Own(_) => (5, HEADER_WITH_END),
            Table::Twitter => (7, "timestamp,key,key size,value size,client,operation,TTL"),
            Table::Msr => (7, "timestamp,host,disk,type,offset,size,response time"),
            Table::CacheLib(columns) => (columns.count, "as in the header"),
            Table::LibCacheSim { columns, .. } => (columns.count, "as in the first line"),
        };
        if fields.len() != count {
            return Err(format!("expected {count} fields ({names}), found {}", fields.len()));
        }
        match self {
            Table::Own(_) => own(&fields),
            Table::Twitter => {
                let kind = cache_op(fields[5]).ok_or_else(|| unknown_op(fields[5]))?;
                let stamp = Stamp::parse(fields[0], fields[6]);
                let size = size("value size", fields[3])?;
                Ok(Record { stamp, ..Record::new(kind, fields[1].as_bytes(), size) })
            }
            Table::Msr => {
                let offset = fields[4].parse::<u64>();
                let offset = offset.map_err(|_| not_whole("offset", fields[4]))?;
                let kind = block_op(fields[3]).ok_or_else(|| unknown_op(fields[3]))?;
                let key = format!("{}.{}/{offset:020}", fields[1], fields[2]);
                Ok(Record::new(kind, key.into_bytes(), size("size", fields[5])?))
            }
            Table::CacheLib(columns) => columns.cachelib(&fields),
            Table::LibCacheSim { columns, .. } => columns.libcachesim(&fields),
        }
    }
}

impl Columns {
    /// Returns the places that a header of CacheLib names.
    fn of_cachelib(fields: &[&str]) -> Option<Columns> {
        let place = |name| fields.iter().position(|field| *field == name);
        let (key, op, size) = (place("key")?, place("op")?, place("size")?);
        let stamp = place("op_time").zip(place("ttl"));
        let times = place("op_count");
        Some(Columns { key, op: Some(op), size, times, stamp, count: fields.len() })
    }

    /// Returns the places that a header of libCacheSim names.
    fn of_libcachesim(fields: &[&str]) -> Option<Columns> {
        let place = |names: &[&str]| fields.iter().position(|field| names.contains(field));
        let key = place(&["object", "obj", "obj_id", "object_id", "lbn"])?;
        let size = place(&["size", "obj_size", "object_size"])?;
        Some(Columns { key, op: place(&["op"]), size, count: fields.len(), ..Columns::default() })
    }

    fn cachelib<'a>(&self, fields: &[&'a str]) -> Result<Record<'a>, String> {
        let op = self.op.map_or("", |at| fields[at]);
        let kind = cache_op(op).ok_or_else(|| unknown_op(op))?;
        let times = self.times.map_or("1", |at| fields[at]);
        let whole = times.parse().ok().filter(|times| *times <= TIMES_MAX);
        let times = whole
            .ok_or_else(|| format!("op_count `{times}` is not a whole number up to {TIMES_MAX}"))?;
        let size = size("size", fields[self.size])?;
        let stamp = self.stamp.and_then(|(time, life)| Stamp::parse(fields[time], fields[life]));
        Ok(Record { times, stamp, ..Record::new(kind, fields[self.key].as_bytes(), size) })
    }

    fn libcachesim<'a>(&self, fields: &[&'a str]) -> Result<Record<'a>, String> {
        let object = fields[self.key].trim();
        let key = match object.parse::<u64>() {
            Ok(number) => number_key(number).into(),
            Err(_) => Cow::Borrowed(object.as_bytes()),
        };
        let size = size("size", fields[self.size].trim())?;
        let Some(op) = self.op.map(|at| fields[at].trim()) else {
            return Ok(Record::request(key, size));
        };
        let kind = block_op(op).or_else(|| scsi_op(op)).or_else(|| cache_op(op));
        Ok(Record::new(kind.ok_or_else(|| unknown_op(op))?, key, size))
    }
}

/// Parses the fields of a line in our format.
fn own<'a>(fields: &[&'a str]) -> Result<Record<'a>, String> {
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
    let end = is_range.then_some(end.as_bytes());
    Ok(Record { end, ..Record::new(kind, key.as_bytes(), size("value_size", value_size)?) })
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
        "Read" | "read" => Some(TraceOpKind::Get),
        "Write" | "write" => Some(TraceOpKind::Put),
        _ => None,
    }
}

fn unknown_op(op: &str) -> String {
    format!("unknown op `{op}`")
}

/// Returns what a command of SCSI to read or to write does to a store, by its code.
fn scsi_op(op: &str) -> Option<TraceOpKind> {
    match op {
        "8" | "08" | "28" | "a8" | "88" => Some(TraceOpKind::Get),
        "a" | "0a" | "2a" | "aa" | "8a" => Some(TraceOpKind::Put),
        _ => None,
    }
}

fn is_binary(letter: char) -> bool {
    letter.is_control() && !['\t', '\x7f'].contains(&letter)
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
        return "not a trace of operations: it looks like a trace of blocks or files of RocksDB; \
                trace the operations instead, with `DB::StartTrace`"
            .to_owned();
    }
    format!(
        "not a trace: it is no text. If it has libCacheSim's 24 bytes for each request, say \
         format=oracle_general; else {CONVERT} {HEADER}"
    )
}

/// Says what a first line of text looks like.
fn refused_text(text: &str, fields: &[&str]) -> String {
    let names = text.to_ascii_lowercase();
    let has_object = ["obj", "object", "block_id"].iter().any(|name| names.contains(name));
    let numbers = fields.iter().filter(|field| is_number(field)).count();
    let what = if fields.len() >= 15 && (numbers >= 5 || has_object) {
        "a trace of RocksDB's block cache, whose keys are blocks; trace the operations instead, \
         with `StartTrace`"
    } else if (2..=6).contains(&fields.len()) && (has_object || numbers == fields.len()) {
        "requests of a cache: if they have time, object and size, say format=libcachesim; else"
    } else {
        let found: String = text.chars().take(60).collect();
        return format!("not a trace: expected the header `{HEADER}`, found `{found}`");
    };
    format!("not a trace: it looks like {what}; {CONVERT} {HEADER}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Layout, String> {
        Layout::of(text.as_bytes(), None)
    }

    #[test]
    fn layouts_are_known_by_their_first_line() {
        for (first, table) in [
            (HEADER, Table::Own(4)),
            ("\u{feff}timestamp,op,key,value_size,end", Table::Own(5)),
            ("0,q:q:1:8WTfjZU14ee,17,213,4,get,0", Table::Twitter),
            ("128166372003061629,hm,1,Read,383496192,32768,413", Table::Msr),
        ] {
            assert_eq!(of(first), Ok(Layout::Table(table)));
        }
        for header in ["key,op,size,op_count,key_size", "op_time,key,key_size,op,op_count,size,ttl"]
        {
            assert!(matches!(of(header), Ok(Layout::Table(Table::CacheLib(_)))), "{header}");
        }
        for header in ["# time,object,size,next_access_vtime", "version,time,op,size,lbn"] {
            assert!(matches!(of(header), Ok(Layout::Table(Table::LibCacheSim { .. }))), "{header}");
        }
        for printed in ["0x6B6579 1 0 100 1577836800", "6B6579 0 2 0 1577836800"] {
            assert_eq!(of(printed), Ok(Layout::RocksDb));
        }
        for printed in [
            "***************** properties *****************",
            "/usr/bin/java -cp core.jar site.ycsb.Client -db site.ycsb.BasicDB -load",
            "READ usertable user1 [ <all fields>]",
        ] {
            assert_eq!(of(printed), Ok(Layout::Ycsb));
        }
    }

    #[test]
    fn what_is_not_read_is_named_with_a_way_out() {
        for (text, what) in [
            (&b"1,5,4096"[..], "format=libcachesim"),
            (b"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "block cache"),
            (b"\x01\0\0\0\x02", "format=oracle_general"),
            (b"\x28\xb5\x2f\xfd\x24", "zstd"),
            (b"\xff0123 feedcafedeadbeef\tTrace Version", "RocksDB"),
        ] {
            let message = Layout::of(text, None).unwrap_err();
            assert!(message.starts_with("not a trace") && message.contains(what), "{message}");
        }
        assert_eq!(
            of("a,b").unwrap_err(),
            format!("not a trace: expected the header `{HEADER}`, found `a,b`")
        );
    }

    #[test]
    fn blocks_have_keys_in_the_order_of_the_disk() {
        let line = "128166372003061629,hm,1,Write,383496192,32768,413";
        let record = Table::Msr.line(line).unwrap();
        assert_eq!(&*record.key, b"hm.1/00000000000383496192");
        assert_eq!((record.kind, record.size), (TraceOpKind::Put, 32768));
    }
}
