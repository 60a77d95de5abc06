//! x
use lsmith_sim::*;
use lsmith_policy::Registry;
fn main() {
    let specs: Vec<String> = std::env::args().skip(2).collect();
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    for s in specs {
        let p = Registry::builtin().build(&s).unwrap();
        let t = std::time::Instant::now();
        let r = simulate_unit(&p, std::iter::repeat_n(UNIT_BYTES, n), UNIT_BYTES, &mut |_| {}).unwrap();
        let e = t.elapsed();
        let f = r.figures;
        println!("{s:30} {:.3} s {:.2}/{:.2}/{:.3}/{:.3} max {} sp {:.3} {:.3} {:?} {:?}", e.as_secs_f64(), f.write_cost_eager, f.write_cost_system, f.read_cost_mean, f.read_cost_mean_l0_one, f.runs_max, f.space_cost_peak, f.space_cost_mean,
          r.run_bytes_oldest_first().iter().map(|b| b / UNIT_BYTES).collect::<Vec<_>>(), r.level_bytes().iter().map(|b| b/UNIT_BYTES).collect::<Vec<_>>());
    }
}
