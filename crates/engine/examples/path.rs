//! Takes one of the store's hot paths so often, for tools that count instructions:
//! `path get 10000`. With 0 it only makes ready. `cargo xtask instructions` calls it.

#[path = "../benches/paths/work.rs"]
mod work;

use work::{PATHS, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, ops] = &arguments[..] else {
        return Err(format!("expected a path ({}) and a count", PATHS.join(", ")).into());
    };
    let ops: u64 = ops.parse()?;
    let work = Work::new(path)?;
    if ops > 0 {
        std::hint::black_box(work.run(ops)?);
    }
    // What comes after is not part of the path.
    std::mem::forget(work);
    Ok(())
}
