//! Jobs that run on all cores.

use lsmith_lab::{Job, NoProgress, Ticker, measure_all};

/// Finds its number, or fails at 13.
struct Number(u64);

impl Job for Number {
    type Output = u64;

    fn work(&self) -> u64 {
        self.0
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<u64> {
        ticker.tick(self.0);
        anyhow::ensure!(self.0 != 13, "thirteen");
        Ok(self.0)
    }
}

#[test]
fn jobs_are_answered_in_their_order() {
    let jobs: Vec<Number> = [3, 1, 200, 7, 8].map(Number).into();
    let found = measure_all("numbers", &jobs, &NoProgress).unwrap();
    assert_eq!(found, [3, 1, 200, 7, 8]);
    let jobs: Vec<Number> = (0..50).map(Number).collect();
    assert_eq!(measure_all("more", &jobs, &NoProgress).unwrap_err().to_string(), "thirteen");
    assert_eq!(measure_all::<Number>("none", &[], &NoProgress).unwrap(), [0; 0]);
}
