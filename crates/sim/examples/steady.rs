use lsmith_policy::Registry;
use lsmith_sim::{BlockSim, BlockSizes};
use lsmith_tree::EntryKind;
use lsmith_workload::{NoInputs, OpKind, Workload};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mb: u64 = args[1].parse().unwrap();
    let k0: u64 = args[2].parse().unwrap();
    let payload: u64 = args[3].parse().unwrap();
    let record = 4 + payload;
    let per_block = (4096 / (record + 1)) as usize;
    let keys = mb * 1_000_000 / record;
    let run = args[4].parse::<u64>().unwrap() * 1_000_000 / record;
    for spec in &args[5..] {
        let policy = Registry::builtin().build(spec).unwrap();
        let w = format!("uniform(keys={keys}, ops={}, value={payload}B, weigh=records)", run * 2);
        let w = Workload::from_spec(&w.parse().unwrap(), &NoInputs).unwrap();
        let mut sim = BlockSim::new(&policy, BlockSizes { memory_blocks: k0, per_block, record_bytes: record });
        let load = w.load_ops();
        let t = std::time::Instant::now();
        for (i, op) in w.ops().enumerate() {
            let op = op.unwrap();
            let kind = match op.kind { OpKind::Insert => EntryKind::Insert, OpKind::Remove => EntryKind::Remove, k => panic!("{k:?}") };
            sim.write(kind, op.item as u32).unwrap();
            if i as u64 == load + run { sim.restart(); }
        }
        let f = sim.figures();
        let cells: Vec<(u64, usize)> = sim.tree().levels().iter().map(|l| (l.runs().iter().map(|r| r.cell_count()).sum(), l.slice_count())).collect();
        println!("{spec}: {:.0} blocks/MB kept {} {cells:?} {:.1}s", f.write_cost_blocks, f.blocks_kept, t.elapsed().as_secs_f64());
        for n in policy.explain(sim.drive().view()).notes { println!("  {n}"); }
    }
}
