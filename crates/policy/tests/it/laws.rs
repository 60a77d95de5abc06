//! Every policy through every law.

use lsmith_policy::{Registry, laws};

fn check(specs: &[&str]) {
    for spec in specs {
        let policy = Registry::builtin().build(spec).expect(spec);
        if let Err(error) = laws::check(policy.as_ref()) {
            panic!("{error}");
        }
    }
}

#[test]
fn every_builtin_policy_with_its_defaults() {
    for info in Registry::builtin().infos() {
        check(&[info.name]);
    }
}

#[test]
fn auto() {
    check(&["auto(reads=as_leveled)", "auto(runs=3, reads=as_leveled, eager=never)"]);
    check(&[
        "auto(runs=1)",
        "auto(runs=2, price=100)",
        "auto(runs=20, eager=never)",
        "auto(runs=64, price=0.01, eager=always)",
        "auto(runs=30, price=reads)",
        "auto(runs=30, price=0.01, space=1.2)",
        "auto(runs=30, price=0.01, deletes_within=20MiB)",
    ]);
}

#[test]
fn arce() {
    check(&[
        "arce(runs=1)",
        "arce(runs=3, price=0)",
        "arce(runs=64, price=0.01, eager=always)",
        "arce(runs=20, price=1000, horizon=1e6, eager=never)",
        "arce(runs=30, price=reads)",
        "arce(runs=4, horizon=1)",
    ]);
}

#[test]
fn stacks_with_a_largest_merge() {
    check(&[
        "auto(largest=1B)",
        "auto(runs=12, largest=20MiB)",
        "auto(runs=64, price=0.02, largest=100MiB, eager=never)",
        "bigtable(largest=20MiB)",
        "binomial(largest=20MiB)",
        "constant(k=2, largest=5MiB)",
        "exploring(largest=20MiB)",
        "minlatency(count=size, largest=20MiB)",
        "minlatency(k=3, largest=100MiB)",
        "universal(trigger=4, largest=20MiB)",
    ]);
}

#[test]
fn fifo() {
    check(&["fifo(bytes=1B)", "fifo(bytes=1MiB)", "fifo(bytes=100MiB)"]);
}

#[test]
fn bigtable() {
    check(&["bigtable(k=1)", "bigtable(k=3, eager=always)", "bigtable(k=64, eager=never)"]);
}

#[test]
fn constant() {
    check(&["constant(k=1)", "constant(k=2, eager=never)", "constant(k=10, eager=always)"]);
}

#[test]
fn exploring() {
    check(&[
        "exploring(k=1)",
        "exploring(k=4, min=2, eager=always)",
        "exploring(k=10, lambda=0, max=3)",
        "exploring(k=3, lambda=100, min=20, max=30, eager=never)",
    ]);
}

#[test]
fn hbase_stripe() {
    check(&["hbase_stripe(l0=1, k=1)", "hbase_stripe(l0=2, k=3, min=2, split_size=6MiB)"]);
    check(&["hbase_stripe(split_size=1MiB)", "hbase_stripe(l0=1000, k=64, lambda=0)"]);
    check(&["hbase_stripe(l0=3, k=20, min=20, max=30, lambda=100)"]);
}

#[test]
fn minlatency() {
    check(&[
        "minlatency(k=1)",
        "minlatency(k=2, count=size)",
        "minlatency(k=10, eager=always)",
        "minlatency(k=4, count=size, eager=never)",
    ]);
}

#[test]
fn binomial() {
    check(&[
        "binomial(k=1)",
        "binomial(k=3, count=size)",
        "binomial(k=10, eager=always)",
        "binomial(k=5, count=size, eager=never)",
    ]);
}

#[test]
fn tiered() {
    check(&["tiered(ratio=2)", "tiered(ratio=3, eager=always)", "tiered(ratio=10, eager=never)"]);
    check(&["tiered(ratio=1000)"]);
}

#[test]
fn leveled_with_every_pick() {
    for pick in [
        "min_overlap",
        "round_robin",
        "narrowest",
        "best_ratio",
        "oldest",
        "oldest_smallest",
        "largest",
        "tombstones",
        "whole_level",
        "in_turn",
        "random",
    ] {
        check(&[
            &format!("leveled(ratio=4, pick={pick})"),
            &format!("leveled(ratio=3, l0=1, pick={pick}, table=200kB)"),
            &format!("leveled(ratio=5, l0=3, pick={pick}, sizes=dynamic)"),
        ]);
    }
}

#[test]
fn lethe() {
    check(&[
        "lethe(delete_within=1)",
        "lethe(delete_within=10, ratio=3, l0=1, pick=min_overlap)",
        "lethe(delete_within=30, ratio=4, l0=4, table=200kB)",
        "lethe(delete_within=1000000000, ratio=1000)",
    ]);
}

#[test]
fn policies_that_count_in_blocks() {
    check(&[
        "full(ratio=2, reuse=false)",
        "rr(ratio=3, rate=0.5)",
        "choose_best(ratio=1.5, rate=1)",
    ]);
    check(&["test_mixed(ratio=4, rate=0.01)", "mixed(ratio=3, tau=0.3/0.5, beta=true)"]);
    check(&["mixed(ratio=2, search=golden)", "choose_best(rate=0.2, reuse=false)"]);
    check(&["rr(ratio=3, waste=0.05, bottom=0.3)", "mixed(ratio=2, waste=0.5, bottom=0.01)"]);
}

#[test]
fn sweep() {
    check(&[
        "sweep(k=3, least=1)",
        "sweep(k=4, young=0.01, least=1.5)",
        "sweep(k=64, young=100)",
        "sweep(k=5, young=1)",
    ]);
}

#[test]
fn leveled_with_extreme_parameters() {
    check(&["leveled(ratio=1.5, l0=1000)", "leveled(ratio=1000, l0=1, table=1GiB)"]);
    check(&["leveled(ratio=1000, pick=round_robin, table=1B)"]);
}

#[test]
fn levels_of_given_sizes() {
    for name in ["leveldb", "rocksdb"] {
        check(&[
            &format!("{name}(l0=1, level1=300kB, ratio=2, table=100kB)"),
            &format!("{name}(l0=2, sizes=2MiB:5MiB:5MiB, table=1MiB)"),
            &format!("{name}(l0=8, sizes=1B, table=64MiB)"),
            &format!("{name}(sizes=40MiB)"),
        ]);
    }
}

#[test]
fn slots() {
    for name in ["cola", "samt"] {
        check(&[&format!("{name}(ratio=2)"), &format!("{name}(ratio=4, eager=always)")]);
        check(&[&format!("{name}(ratio=1000)"), &format!("{name}(ratio=10, eager=never)")]);
    }
}

#[test]
fn universal() {
    check(&["universal(trigger=2)", "universal(trigger=4, size_ratio=50, eager=always)"]);
    check(&["universal(trigger=30, space_max=1)", "universal(size_ratio=0, space_max=1e6)"]);
    check(&["universal(trigger=2, space_max=1, incremental=true)"]);
    check(&["universal(trigger=4, space_max=50, incremental=true, eager=never)"]);
    check(&["universal(trigger=12, space_max=25, incremental=true, eager=always)"]);
}

#[test]
fn fluid() {
    check(&["fluid(ratio=2)", "fluid(ratio=10, inner=1, last=1)", "fluid(ratio=10, inner=3)"]);
    check(&["fluid(ratio=5, inner=1, last=4, eager=always)", "fluid(inner=3, last=3)"]);
    check(&["fluid(ratio=1000, inner=500, last=2, eager=never)"]);
    check(&["lazy_leveling(ratio=2)", "lazy_leveling(ratio=10, eager=always)"]);
    check(&["lazy_leveling(ratio=3, eager=never)", "lazy_leveling(ratio=1000)"]);
}

#[test]
fn autumn() {
    check(&["autumn(ratio=2, c=0.5)", "autumn(ratio=10, c=1, eager=always)"]);
    check(&["autumn(ratio=2, c=0.1, eager=never)", "autumn(ratio=1000, c=0.1)"]);
}

#[test]
fn moose() {
    check(&["moose(price=0.001)", "moose(price=1000, eager=always)", "moose(price=reads)"]);
    check(&["moose(price=0.1, space=1.1, eager=never)", "moose(price=0.5, size=1B)"]);
    check(&["moose(price=0.3, size=1000GiB, space=1.5)"]);
}

#[test]
fn vertiorizon() {
    check(&["vertiorizon(levels=1)", "vertiorizon(levels=2, ratio=2, eager=never)"]);
    check(&["vertiorizon(levels=62, eager=always)", "vertiorizon(ratio=1000)"]);
    check(&["vertiorizon(levels=1, merge=leveling, ratio=2, eager=always)"]);
    check(&["vertiorizon(levels=5, merge=leveling)"]);
}

#[test]
fn spooky() {
    check(&["spooky(ratio=2)", "spooky(ratio=2, l0=0, eager=never)", "spooky(ratio=10, l0=0)"]);
    check(&["spooky(ratio=1000, l0=10, eager=always)", "spooky(ratio=3, l0=1)"]);
}

#[test]
fn ucs() {
    check(&["ucs(w=N)", "ucs(w=T1000)", "ucs(w=L1000)", "ucs(w=L4, eager=always)"]);
    check(&["ucs(w=T8/T4/L10)", "ucs(w=L10/T3, eager=never)", "ucs(w=T2)"]);
    check(&["ucs(w=adaptive)", "ucs(w=adaptive, get=0B, scan=1MiB, eager=never)"]);
}

#[test]
fn lucene_tiered() {
    check(&["lucene_tiered(tier=2)", "lucene_tiered(tier=4, at_once=2, eager=always)"]);
    check(&["lucene_tiered(tier=5, floor=1B, eager=never)", "lucene_tiered(tier=1000)"]);
    check(&["lucene_tiered(tier=3, largest=8MiB)", "lucene_tiered(largest=1B)"]);
    check(&["lucene_tiered(tier=2, at_once=30, floor=1GiB, largest=20MiB, eager=always)"]);
}

#[test]
fn clickhouse() {
    check(&["clickhouse(base=2)", "clickhouse(base=100, few=1, many=2)"]);
    check(&["clickhouse(base=3, fixed=0B, eager=always)", "clickhouse(largest=8MiB)"]);
    check(&["clickhouse(fixed=1GiB, largest=1B)", "clickhouse(few=2, many=20, eager=never)"]);
}

#[test]
fn ics() {
    check(&["ics(threshold=0.01)", "ics(threshold=100)", "ics(threshold=3, min=10)"]);
    check(&["ics(goal=1.2, eager=always)", "ics(threshold=2, goal=1000, eager=never)"]);
    check(&["ics(threshold=0.5, min=1000)", "ics(goal=1.001)"]);
}

#[test]
fn triangular() {
    for score in ["ratio", "bytes"] {
        check(&[
            &format!("triangular(score={score})"),
            &format!("triangular(max_bytes=5MiB, max_files=1M, score={score})"),
            &format!("triangular(max_bytes=1024GiB, max_files=2, score={score})"),
            &format!("triangular(max_bytes=1B, max_files=7, score={score})"),
        ]);
    }
}

#[test]
fn jungle() {
    check(&["jungle"]);
}

#[test]
fn jungle_without_dead_space() {
    check(&["jungle(c=1, ratio=2)"]);
}

#[test]
fn jungle_of_large_tables() {
    check(&["jungle(c=10, ratio=3, table=4MB)", "jungle(c=1.5, ratio=4, table=100kB)"]);
}

#[test]
fn jungle_with_limits_of_its_own_for_levels_and_ranges() {
    check(&["jungle(c=10/3/1.5, ratio=2)", "jungle(space=1.2, ratio=3)"]);
}
