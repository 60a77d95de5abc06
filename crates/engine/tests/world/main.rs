//! The world around a store: real processes on real file systems, and what happens to them.
//!
//! Promised: whatever accident of the table in `accidents.rs` happens to a store, alone, with
//! another one, and again in the next life, nothing that was synced is lost, or an error names what
//! is wrong. There is no third outcome: no write that is acknowledged and lost, no hang, no report
//! of a repair that calls a loss exact, no harm to files of others. The life after it goes on.
//!
//! 1. `child.rs`: a process with a store, which obeys lines of text and answers with lines.
//! 2. `stage.rs`: a directory or a file system of its own, the child, and the ledger of what it
//!    acknowledged.
//! 3. `judge.rs`: compares what a fresh process reads with the ledger.
//! 4. `accidents.rs`, `files.rs`, `processes.rs`, `systems.rs`: the table.
//!
//! By default each accident is played alone, and a sample of pairs, the same in each run; half of
//! these plays have encrypted stores. `LSMITH_SEED=N` plays another sample, and `LSMITH_FULL=1` all
//! accidents and all pairs, with encryption and without. `LSMITH_WORLD=WORDS` plays those whose
//! names contain the words, and `A + B` that pair.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real files, processes and times are what is tested"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod accidents;
mod child;
mod files;
mod judge;
mod processes;
mod stage;
mod system;
mod systems;

use accidents::{Accident, Moment, all};
use lsmith_fuzz::dice::{self, Dice};
use stage::{Place, Played, Stage};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The pairs that a default run plays.
const PAIRS: usize = 60;

/// The plays that run beside one another. Most of their time they wait for the device.
const THREADS: usize = 3;

/// What is played: the accidents of each of two lives.
#[derive(Clone)]
struct Play<'a> {
    accidents: Vec<&'a Accident>,
    /// True if the stores are encrypted.
    is_encrypted: bool,
}

fn name(play: &Play<'_>) -> String {
    let mut names: Vec<_> = play.accidents.iter().map(|accident| accident.name.as_str()).collect();
    names.extend(play.is_encrypted.then_some("encrypted"));
    names.join(" + ")
}

/// Returns the place where all accidents of `play` can happen.
fn place(play: &Play<'_>) -> Option<Place> {
    let mut special = play.accidents.iter().filter_map(|accident| accident.place);
    let first = special.next();
    special.all(|place| Some(place) == first).then(|| first.unwrap_or(Place::Plain))
}

/// Prints a line, also if the test passes.
fn say(line: &str) {
    let mut out = std::io::stderr();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// One life: what happens while the store is closed, is open, and is written to.
fn live(stage: &mut Stage, accidents: &[&Accident]) -> Played {
    for accident in accidents.iter().filter(|accident| accident.moment == Moment::Closed) {
        (accident.play)(stage)?;
    }
    stage.open();
    stage.write(14);
    for accident in accidents.iter().filter(|accident| accident.moment == Moment::Open) {
        (accident.play)(stage)?;
        stage.write(14);
        stage.work();
        stage.write(8);
    }
    stage.work();
    stage.write(4);
    stage.close();
    stage.undo();
    stage.judge();
    Ok(())
}

/// Plays two lives with the same accidents, between two without.
fn perform(play: &Play<'_>) -> Played {
    let Some(place) = place(play) else { return Err("no place has both".into()) };
    let mut stage = Stage::new(place, play.is_encrypted)?;
    if play.accidents.iter().all(|accident| !accident.is_early) {
        live(&mut stage, &[])?;
    }
    live(&mut stage, &play.accidents)?;
    live(&mut stage, &play.accidents)?;
    if asked().is_some() {
        say(&format!("{}: {:?}", name(play), stage.outcomes));
    }
    live(&mut stage, &[])
}

/// Plays all of `plays`; prints what was left out, and panics with all that failed.
fn run(what: &str, plays: &[Play<'_>]) {
    let (next, failures, left) = (AtomicUsize::new(0), Mutex::new(vec![]), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(play) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A thread of its own has a namespace of mounts of its own.
                    let played = std::thread::scope(|one| one.spawn(|| perform(play)).join());
                    match played {
                        Ok(Ok(())) => {}
                        Ok(Err(reason)) => left.lock().unwrap().push((name(play), reason)),
                        Err(panic) => {
                            let text = panic.downcast_ref::<String>().cloned();
                            failures.lock().unwrap().push((name(play), text.unwrap_or_default()));
                        }
                    }
                }
            });
        }
    });
    let (failures, left) = (failures.into_inner().unwrap(), left.into_inner().unwrap());
    for (name, reason) in &left {
        say(&format!("{what}: left out: {name}: {reason}"));
    }
    let (failed, left) = (failures.len(), left.len());
    say(&format!("{what}: {} played, {failed} failed, {left} left out", plays.len() - left));
    let text = failures.iter().map(|(name, text)| format!("\n== {name}\n{text}"));
    assert!(failures.is_empty(), "{}", text.collect::<String>());
}

/// Returns the words of `LSMITH_WORLD`, which ask for some plays only.
fn asked() -> Option<String> {
    std::env::var("LSMITH_WORLD").ok()
}

#[test]
fn accidents_alone_and_again_in_the_next_life() {
    let all = all();
    let wanted = asked().unwrap_or_default();
    // Every second one is encrypted: with all, it takes a full run.
    let each = all.iter().enumerate().flat_map(|(at, accident)| {
        [false, true].map(|is_encrypted| (at, Play { accidents: vec![accident], is_encrypted }))
    });
    let are_all = dice::full() || !wanted.is_empty();
    let plays = each.filter(|(at, play)| are_all || play.is_encrypted == (at % 2 == 1));
    let plays: Vec<_> = plays.map(|(_, play)| play).collect();
    let plays: Vec<_> = plays.into_iter().filter(|play| name(play).contains(&wanted)).collect();
    run("alone", &plays);
}

#[test]
fn accidents_in_pairs() {
    let all = all();
    let pairs = all.iter().flat_map(|one| all.iter().map(move |other| vec![one, other]));
    let pairs = pairs.flat_map(|accidents| {
        [false, true].map(|is_encrypted| Play { accidents: accidents.clone(), is_encrypted })
    });
    let mut plays: Vec<Play<'_>> = pairs.filter(|play| place(play).is_some()).collect();
    if let Some(wanted) = asked() {
        plays.retain(|play| name(play).contains(&wanted));
    } else if !dice::full() {
        let seed = dice::seed_or(1);
        say(&format!("pairs: a sample with LSMITH_SEED={seed}"));
        let mut dice = Dice::new(seed);
        plays = (0..PAIRS).map(|_| dice.pick(&plays).clone()).collect();
    }
    run("pairs", &plays);
}
