//! Texts of any kind: refused, or printed and read back the same.

use crate::{Params, Spec, format_bytes, format_count, nearest, parse_bytes, parse_count};
use lsmith_fuzz::{Choices, change_text, fuzz, peak_bytes, text_of};

const SPECS: [&str; 5] = [
    "tiered(ratio=4)",
    "ycsb( a, records=100k , ops = 5)",
    "leveled(ratio=1.5,pick=min_overlap,table=4MiB)",
    "compare(tiered(ratio=4, eager=always), b=(x=(y))); none ;; k",
    "trace(/a b/c=d.csv, =, 1=2, x=y=z)",
];

const PARTS: [&str; 24] = [
    "a", "zstd", "(", ")", "()", ",", "=", ";", " ", "\t", "k=", "k=1", "(a)", "a=b", "-", "_",
    "1", "1.5", ".", "é", "\u{3000}", ",,", ")(", "a(",
];

const SIZES: [&str; 12] = [
    "4MiB",
    "1.5 GB",
    "0.250kB",
    "100B",
    "4096",
    "1G",
    "18446744073709551615B",
    "17179869183GiB",
    "0.000000000931322574615478515625GiB",
    "1500k",
    "0.9999G",
    " 7 ",
];

const UNITS: [&str; 16] =
    ["B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "k", "M", "G", ".", "0", "00000", "9", "1", " "];

fn one(parts: &[&str], whole: &[&str], choices: &mut Choices<'_>) -> String {
    if choices.chance(60) {
        change_text(choices.pick(whole), parts, choices)
    } else {
        text_of(parts, 24, choices)
    }
}

fn check_params(spec: &Spec) {
    let Ok(params) = Params::new(spec, &["k", "ratio", "ops", "a"], 2) else { return };
    for name in ["k", "ratio", "ops", "a"] {
        let _ = params.count(name, 1, 1..=64);
        let _ = params.bytes(name, 1, 1..);
        let _ = params.real(name, 1.5, 1.0..2.0);
        let _ = params.positional(1, "a file");
    }
}

#[test]
fn fuzz_specs() {
    fuzz!(100_000, |choices| {
        let text = one(&PARTS, &SPECS, choices);
        let (read, peak) = peak_bytes(|| (text.parse::<Spec>(), Spec::parse_list(&text)));
        assert!(peak < 4096 + 400 * text.len(), "{peak} bytes for {text:?}");
        let (spec, list) = read;
        if let Ok(spec) = spec {
            assert_eq!(spec.to_string().parse(), Ok(spec.clone()), "{text:?}");
            check_params(&spec);
        }
        if let Ok(list) = list {
            let printed: Vec<String> = list.iter().map(Spec::to_string).collect();
            assert_eq!(Spec::parse_list(&printed.join("; ")), Ok(list), "{text:?}");
        }
        let _ = nearest(&text, &["tiered", "é", "", "ratio"]);
    });
}

#[test]
fn fuzz_sizes_and_counts() {
    fuzz!(300_000, |choices| {
        let text = one(&UNITS, &SIZES, choices);
        let bytes = parse_bytes(&text);
        let count = parse_count(&text);
        if let Ok(bytes) = &bytes {
            assert_eq!(parse_bytes(&format_bytes(*bytes)).as_ref(), Ok(bytes), "{text:?}");
        }
        if let Ok(count) = &count {
            assert_eq!(parse_count(&format_count(*count)).as_ref(), Ok(count), "{text:?}");
            assert_eq!(bytes.as_ref(), Ok(count), "every count is a size: {text:?}");
        }
    });
}
