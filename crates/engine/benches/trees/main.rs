//! Measures range reads of append tables, and of a sorted table with the same entries.
//!
//! There are two append tables. Ten batches made the first one, each with a tenth of the keys. The
//! second one got all keys at once, and then ten batches of updates. Each is read twice: from
//! memory, which is measured in CPU time of the thread, and from the device, which is measured in
//! time on the clock and in bytes that the device read.
//!
//! `cargo bench -p lsmith --bench trees -- [MIB [VALUE_BYTES..]]` reads tables of `MIB` MiB, with
//! values of each of these lengths. The folder for temporary files must be on a device.
//!
//! `cargo bench -p lsmith --bench trees -- sizes [MIB]` measures instead what tables take on
//! storage, for long keys, and for values that are compressed together or one by one.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]
#![allow(clippy::print_stdout, reason = "the table is the result")]

#[path = "../shared/keys.rs"]
mod keys;
mod reads;
mod sizes;
mod stores;

use reads::{Cost, Reads};
use stores::{Made, Shape};

/// The size of a table in MiB, if no argument says another one.
const MIB: u64 = 64;

const VALUE_BYTES: [usize; 3] = [100, 1000, 8000];

/// The best of so many rounds counts. Other processes can only make a round slower.
const ROUNDS: u32 = 5;

fn main() {
    let is_number = |word: &String| word.parse::<u64>().is_ok();
    let numbers: Vec<String> = std::env::args().skip(1).filter(is_number).collect();
    let number = |word: &String| word.parse::<u64>().expect("it is a number");
    let bytes = numbers.first().map_or(MIB, number) << 20;
    if std::env::args().any(|word| word == "sizes") {
        return sizes::print(bytes).expect("there is room");
    }
    let values: Vec<usize> = numbers.iter().skip(1).map(|word| number(word) as usize).collect();
    let values = if values.is_empty() { VALUE_BYTES.to_vec() } else { values };
    println!(
        "| values, reads | table | warm, ns per entry | cold, ns per entry | cold, bytes read |"
    );
    println!("|---|---|---|---|---|");
    for value_bytes in values {
        for is_mapped in [true, false] {
            compare(bytes, value_bytes, is_mapped).expect("there is room");
        }
    }
}

/// Prints a line for each kind of reads and each shape of a table.
fn compare(bytes: u64, value_bytes: usize, is_mapped: bool) -> lsmith::Result<()> {
    let entries = bytes / (16 + value_bytes as u64 + 8);
    let made = Shape::ALL.map(|shape| Made::new(shape, entries, value_bytes));
    let way = if is_mapped { "mapped" } else { "by calls" };
    for reads in Reads::all(entries) {
        let mut best = [Cost::WORST; Shape::ALL.len()];
        // The shapes take turns.
        for _ in 0..ROUNDS {
            for (made, best) in made.iter().zip(&mut best) {
                let made = made.as_ref().map_err(|error| panic!("{error}")).expect("it was made");
                best.take(reads.cost(made, is_mapped)?);
            }
        }
        let sorted = best[0];
        for (shape, cost) in Shape::ALL.into_iter().zip(best) {
            let times = |value: f64, sorted: f64| format!("{value:.0} ({:.2})", value / sorted);
            println!(
                "| {value_bytes} B, {}, {way} | {} | {} | {} | {} |",
                reads.name,
                shape.name(),
                times(cost.warm, sorted.warm),
                times(cost.cold, sorted.cold),
                times(cost.device, sorted.device),
            );
        }
    }
    Ok(())
}
