//! `tune`: the best policy for a workload.

use crate::args::TuneArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::layout::{prose_width, wrapped};
use crate::output::{print, print_json};
use crate::page;
use crate::specs;
use crate::table::Importance::{Least, OfTheOneBefore, Rank};
use crate::table::{binary, cost, cost_if_known, percent, ranked, short, table};
use lsmith_lab::page::Group;
use lsmith_lab::tune::{
    Aim, Checked, Choice, Device, DriftChoice, Drifted, Fared, Limits, Mix, OnMachine, TimedChoice,
    Tuned, Tuning, Verified, VerifiedRow, Weights, check_tried,
};
use lsmith_lab::{Options, Row};
use lsmith_spec::{Spec, format_bytes};

pub(crate) fn tune(args: &TuneArgs, json: bool) -> anyhow::Result<()> {
    let workload = specs::workload(&args.workload)?;
    let compare_to = args.compare_to.as_deref().map(specs::policy).transpose()?;
    let endurance_bytes = args.endurance;
    let machine = specs::machine(args.machine.machine.as_deref())?;
    if args.weights == Some(Aim::Fastest) && (machine.is_none() || args.drift.is_some()) {
        let message = "`--weights fastest` is decided in simulated time: expected `--machine` with \
                       it, and no `--drift`";
        return Err(bad_argument(message));
    }
    let threads = args.threads.unwrap_or(Options::default().threads);
    let limits = Limits {
        read_cost_max: args.read_cost_max,
        scan_cost_max: args.scan_cost_max,
        space_cost_max: args.space_cost_max,
        merge_bytes_max: args.longest_merge,
        memory_bytes: args.memory,
        memtable_bytes: args.memtable.of(&workload),
        aim: args.weights,
        drift: args.drift,
        compare_to: compare_to.map(|policy| policy.spec()),
        policies: args.policy.iter().map(|spec| asked(spec)).collect::<Result<_, _>>()?,
        on_machine: machine.map(|machine| OnMachine { machine, threads }),
        device: args.rate.map(|bytes_per_second| Device { bytes_per_second, endurance_bytes }),
    };
    let bars = Bars::new();
    let registry = specs::registry();
    let tuning = Tuning { registry, workload: &workload, limits: &limits, progress: &bars };
    let mut tuned = tuning.run()?;
    if args.check {
        tuning.check(&mut tuned)?;
    }
    if args.verify {
        tuning.verify(&mut tuned, &std::env::temp_dir())?;
    }
    if args.html.is_some() || args.svg.is_some() {
        let group = Group::of_tuned(&serde_json::to_value(&tuned)?)?;
        page::write("lsmith tune", vec![group], args.html.as_deref(), args.svg.as_deref())?;
    }
    if json { print_json(&tuned) } else { Ok(print(shown(&tuned))?) }
}

/// Parses the spec of a policy whose parameters are to be tried.
fn asked(spec: &str) -> anyhow::Result<Spec> {
    check_tried(&*specs::policy(spec)?).map_err(bad_argument)?;
    spec.parse().map_err(bad_argument)
}

fn shown(tuned: &Tuned) -> String {
    let mut parts = vec![best(tuned), measure(tuned)];
    parts.extend(tuned.fared.iter().map(fared));
    parts.push(frontier(&tuned.frontier));
    if !tuned.timed.is_empty() {
        parts.push(timed(&tuned.timed, &tuned.best.policy));
    }
    parts.extend(tuned.drift.as_ref().map(drift));
    parts.extend(tuned.checked.as_ref().map(checked));
    parts.extend(tuned.verified.as_ref().map(verified));
    parts.join("\n\n")
}

/// Returns a table of the best choice beside the others.
fn best(tuned: &Tuned) -> String {
    let mut choices = vec![("best", &tuned.best)];
    choices.extend(tuned.yours.as_ref().map(|yours| ("yours", yours)));
    choices.extend(tuned.fared.iter().filter_map(|fared| Some(("tried", fared.best.as_ref()?))));
    choices.push(("default", &tuned.default));
    let mut header = vec!["figure"];
    header.extend(choices.iter().map(|(label, _)| *label));
    let mut rows = Vec::new();
    let mut row = |name: &str, value: &dyn Fn(&Choice) -> String| {
        let values = choices.iter().map(|(_, choice)| value(choice));
        rows.push(std::iter::once(name.to_owned()).chain(values).collect());
    };
    row("policy", &|choice| choice.policy.clone());
    row("write_cost_system", &|choice| cost(choice.costs.write_cost_system));
    row("write_cost_user", &|choice| cost(choice.costs.write_cost_user));
    row("read_cost_mean", &|choice| cost(choice.costs.read_cost_mean));
    row("scan_cost_mean, blocks", &|choice| cost_if_known(choice.costs.scan_cost_mean.blocks));
    row("space_cost_mean", &|choice| cost(choice.costs.space_cost_mean));
    row("space_cost_physical_mean", &|choice| cost(choice.costs.space_cost_physical_mean));
    row("writes simulated", &|choice| simulated(choice));
    row("memtable", &|choice| binary(choice.memtable_bytes));
    row("filter bits per entry", &|choice| cost(choice.filter_bits));
    row("memory", &|choice| binary(choice.memory_bytes));
    row("of this memtables", &|choice| binary(choice.memory.memtables));
    row("of this filters", &|choice| binary(choice.memory.filters));
    row("of this fence pointers", &|choice| binary(choice.memory.fences));
    if tuned.best.wear.is_some() {
        let wear = |choice: &Choice, value: fn(&lsmith_lab::tune::Wear) -> f64| {
            choice.wear.as_ref().map_or_else(|| "-".to_owned(), |wear| short(value(wear)))
        };
        let a_day = |choice: &Choice| {
            let wear = choice.wear.as_ref();
            wear.map_or_else(|| "-".to_owned(), |wear| binary(wear.bytes_a_day as u64))
        };
        row("SSD written a day", &a_day);
        row("SSD years", &|choice| wear(choice, |wear| wear.years));
    }
    table(&header, 1, rows)
}

fn simulated(choice: &Choice) -> String {
    let writes = short(choice.costs.writes as f64);
    let factor = choice.costs.memtable_factor;
    let larger = if factor > 1.0 {
        format!(", with memtables {} times as large", short(factor))
    } else {
        String::new()
    };
    if choice.costs.share == 1.0 {
        format!("all {writes}{larger}")
    } else {
        format!("{writes}, {} %{larger}", short(choice.costs.share * 100.0))
    }
}

/// Says by what the best choice was found.
fn measure(tuned: &Tuned) -> String {
    let Weights { write, read, scan, space } = tuned.weights;
    let scan = scan.unwrap_or_default();
    let aim = if (write, read, scan, space) == (1.0, 0.0, 0.0, 0.0) {
        "The best choice writes least within the limits.".to_owned()
    } else {
        format!(
            "One percent is worth {} of bytes written, {} of the work of a lookup, {} of blocks \
             per range read, {} of bytes held. Limits or --weights change that.",
            cost(write),
            cost(read),
            cost(scan),
            cost(space)
        )
    };
    let scale = if tuned.shrink > 1.0 {
        format!(
            "\nThe workload has too many operations to be read whole. Instead {} was read, with \
             memtables smaller by the same factor.",
            tuned.simulated
        )
    } else {
        String::new()
    };
    let least = tuned.least.as_ref().map_or_else(String::new, |least| {
        let exact = if least.is_exact { "" } else { "at least " };
        format!(
            "\nIf no key were written twice, the least by these weights without space would be \
             {exact}{} bytes written with {} runs per lookup: the best choice is {} % above it.",
            cost(least.write_cost_system),
            cost(least.read_cost_mean),
            percent(Some(least.above))
        )
    });
    format!(
        "{aim} {} choices were simulated key by key in {:.1} s.{scale}{least}",
        tuned.considered, tuned.seconds
    )
}

/// Says how a policy fared that was asked for.
fn fared(fared: &Fared) -> String {
    let Fared { asked, choices, best, is_within, above } = fared;
    let Some(best) = best else {
        return format!("{asked}: every choice of its parameters writes or reads too much.");
    };
    let tried = match choices {
        1 => "1 choice was tried".to_owned(),
        choices => format!("{choices} choices of its parameters were tried"),
    };
    let limits = if *is_within { "" } else { ", and is outside the limits" };
    let text = match above {
        Some(above) if *above > 0.0005 => {
            format!(
                "The best, {}, costs {:.1} % more than the best choice",
                best.policy,
                above * 100.0
            )
        }
        Some(above) if *above < -0.0005 => format!(
            "The best, {}, costs {:.1} % less than the best choice",
            best.policy,
            above.abs() * 100.0
        ),
        _ => format!("The best, {}, costs as little as the best choice", best.policy),
    };
    wrapped(&format!("{asked}: {tried}. {text}{limits}."), prose_width())
}

fn frontier(choices: &[Choice]) -> String {
    let header = [
        "policy",
        "would be best with",
        "write_cost_user",
        "read_cost_mean",
        "runs_max",
        "space_cost_physical_mean",
        "longest merge",
        "memory",
    ];
    let choice = |choice: &Choice| {
        vec![
            choice.policy.clone(),
            choice.wins_with.clone().unwrap_or_default(),
            cost(choice.costs.write_cost_user),
            cost(choice.costs.read_cost_mean),
            choice.costs.runs_max.to_string(),
            format!("{:.3}", choice.costs.space_cost_physical_mean),
            binary(choice.costs.merge_bytes_max),
            binary(choice.memory_bytes),
        ]
    };
    table(&header, 2, choices.iter().map(choice).collect())
}

/// Returns a table of choices in simulated time.
fn timed(choices: &[TimedChoice], best: &str) -> String {
    let header = [
        "in simulated time",
        "1000\nops/s",
        "cpu\ns",
        "held\nback %",
        "longest\npause ms",
        "put p99.9\nus",
    ];
    let row = |TimedChoice { policy, is_within, time }: &TimedChoice| {
        let mark = if policy == best { " (best)" } else { "" };
        let limits = if *is_within { "" } else { " (outside the limits)" };
        let p999 = time.put_nanos.map(|put| format!("{:.1}", put.p999 as f64 * 1e-3));
        vec![
            format!("{policy}{mark}{limits}"),
            format!("{:.1}", time.ops_per_second * 1e-3),
            format!("{:.1}", time.cpu_seconds),
            format!("{:.0}", 100.0 * time.held_back_seconds / time.seconds.max(f64::MIN_POSITIVE)),
            format!("{:.0}", time.pause_longest * 1e3),
            p999.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    table(&header, 1, choices.iter().map(row).collect())
}

/// Says how far the best choice is from the best of all.
fn checked(checked: &Checked) -> String {
    let Some(best) = &checked.best else {
        return format!("None of {} policies is within the limits.", checked.candidates);
    };
    let within = if checked.is_within { "within" } else { "outside" };
    format!(
        "On all writes, the best of {} policies is {best}. The best choice above costs {:+.1} %, \
         and is {within} the limits.",
        checked.candidates,
        checked.above * 100.0
    )
}

/// Returns a table of the nominal and the robust choice.
fn drift(drifted: &Drifted) -> String {
    let header = ["choice", "policy", "as expected", "at worst", "worst mix", "worst popularity"];
    let row = |name: &str, stand: &DriftChoice| {
        vec![
            name.to_owned(),
            stand.policy.clone(),
            cost(stand.cost_expected),
            cost(stand.cost_worst),
            mix(&stand.worst_mix),
            format!("to the power {}", cost(stand.worst_power)),
        ]
    };
    let rows = vec![row("nominal", &drifted.nominal), row("robust", &drifted.robust)];
    format!(
        "Blocks of 4 KiB per operation, as expected ({}) and at worst within {} nats:\n{}",
        mix(&drifted.mix),
        drifted.distance,
        table(&header, 2, rows)
    )
}

fn mix(mix: &Mix) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let [writes, hits, misses, scans] = [mix.writes, mix.hits, mix.misses, mix.scans].map(percent);
    format!("writes {writes}, hits {hits}, misses {misses}, scans {scans}")
}

/// Returns a table of measured and predicted figures.
fn verified(verified: &Verified) -> String {
    let header = [
        ("choice", Rank(0)),
        ("policy", Rank(1)),
        ("figure", Rank(2)),
        ("store", Least),
        ("model", Least),
        ("error %", OfTheOneBefore),
        ("fluid", Least),
        ("error %", OfTheOneBefore),
        ("keyed", Least),
        ("error %", OfTheOneBefore),
    ];
    let cells = |row: &VerifiedRow| {
        let row_of = &row.row;
        let all = [written(row_of), writes(row_of), reads(row_of), scans(row_of), held(row_of)];
        all.map(|mut cells| {
            cells.insert(0, row.label.to_owned());
            cells
        })
    };
    let rows = verified.rows.iter().flat_map(cells).collect();
    format!(
        "On the store, {}, memtables of {}:\n{}\n{}",
        verified.workload,
        format_bytes(verified.memtable_bytes),
        ranked(&header, 3, rows),
        verdict(verified)
    )
}

/// Says whether the best choice is the best on the store.
fn verdict(verified: &Verified) -> String {
    let best = verified.rows.iter().find(|row| row.label == verified.best);
    match best {
        Some(row) if row.label != "best" => {
            format!(
                "At this scale the store does better with {}, which is the best choice now.{}",
                row.row.policy,
                beside(verified, row)
            )
        }
        Some(row) if !row.is_within => {
            "At this scale the store is outside the limits with every choice.".to_owned()
        }
        Some(row) => {
            format!("The best choice is the best of these on the store.{}", beside(verified, row))
        }
        None => "No choice was run on the store.".to_owned(),
    }
}

/// Says what the store measured of the best choice beside the others, one line each.
fn beside(verified: &Verified, best: &VerifiedRow) -> String {
    let figures = |row: &Row| {
        let space = row.engine.space_cost_physical_mean;
        format!(
            "{} bytes written per byte, space {}, {} s of CPU, {} operations a second",
            cost_if_known(row.engine.write_cost_user),
            cost_if_known(space),
            short(row.engine.cpu_seconds),
            short(row.engine.ops_per_second)
        )
    };
    let others = verified.rows.iter().filter(|row| row.label != best.label);
    let rows = std::iter::once(best).chain(others);
    rows.map(|row| format!("\n{} ({}): {}", row.label, row.row.policy, figures(&row.row))).collect()
}

/// Returns the cells of one figure: the measured value, then value and error of each prediction
/// (formula, fluid simulation, keyed simulation).
fn figure(
    row: &Row,
    name: &str,
    measured: Option<f64>,
    predicted: [Option<f64>; 3],
) -> Vec<String> {
    let mut cells = vec![row.policy.clone(), name.to_owned(), cost_if_known(measured)];
    for prediction in predicted {
        let relative = |(predicted, measured): (f64, f64)| predicted / measured - 1.0;
        let error = prediction.zip(measured).map(relative);
        cells.extend([cost_if_known(prediction), percent(error)]);
    }
    cells
}

fn writes(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.map(|model| model.write_cost_system),
        row.fluid.map(|fluid| fluid.costs.write_cost_system),
        Some(row.keyed.costs.write_cost_system),
    ];
    figure(row, "write_cost_system", Some(row.engine.costs.write_cost_system), predicted)
}

fn reads(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.map(|model| model.read_cost_mean),
        row.fluid.map(|fluid| fluid.costs.read_cost_mean),
        Some(row.keyed.costs.read_cost_mean),
    ];
    figure(row, "read_cost_mean", Some(row.engine.costs.read_cost_mean), predicted)
}

fn scans(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.and_then(|model| model.scan_cost_mean.blocks),
        row.fluid.and_then(|fluid| fluid.costs.scan_cost_mean.blocks),
        row.keyed.costs.scan_cost_mean.blocks,
    ];
    figure(row, "scan_cost_mean, blocks", row.engine.costs.scan_cost_mean.blocks, predicted)
}

fn held(row: &Row) -> Vec<String> {
    let physical = row.keyed.physical.map(|costs| costs.space_cost_physical_mean);
    let measured = row.engine.space_cost_physical_mean;
    figure(row, "space_cost_physical_mean", measured, [None, None, physical])
}

fn written(row: &Row) -> Vec<String> {
    let physical = row.keyed.physical.map(|costs| costs.write_cost_user);
    figure(row, "write_cost_user", row.engine.write_cost_user, [None, None, physical])
}
