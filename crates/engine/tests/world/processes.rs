//! Accidents of the process that has the store: forks, signals, limits.

use crate::accidents::{Accident, Moment, accident};
use crate::stage::{Played, Process, Stage};
use crate::system;
use lsmith_fuzz::dice;

pub(crate) fn all() -> Vec<Accident> {
    [asked(), ends()].into_iter().flatten().collect()
}

/// What the process does to itself when it is asked to.
fn asked() -> Vec<Accident> {
    let ask = |moment, name: &str, line: &'static str| {
        accident(moment, name, move |stage: &mut Stage| {
            if moment == Moment::Closed || stage.is_open {
                let answer = stage.ask(line);
                if answer.lines.iter().any(|line| line == "unknown") {
                    return Err("no such filter here".into());
                }
            }
            Ok(())
        })
    };
    vec![
        ask(Moment::Open, "a forked process writes", "fork write 7000 8 sync"),
        ask(Moment::Open, "a forked process works", "fork work"),
        ask(Moment::Open, "a forked process drops the store", "fork close"),
        ask(Moment::Open, "a forked process goes on alone", "leave write 7100 3 sync"),
        ask(Moment::Closed, "a process forks and the copy goes on", "leave read"),
        accident(Moment::Open, "a forked process drops the store at its leisure", |stage| {
            if stage.is_open {
                stage.ask("fork write 7200 2 buffer");
                stage.ask("fork close");
            }
            Ok(())
        }),
        ask(Moment::Open, "signals all the time", "signals"),
        ask(Moment::Closed, "signals all the time from before opening", "signals"),
        ask(Moment::Open, "no more files can be opened", "files 0"),
        ask(Moment::Open, "two more files can be opened", "files 2"),
        ask(Moment::Closed, "three files can be opened", "files 3"),
        ask(Moment::Closed, "eight files can be opened", "files 8"),
        ask(Moment::Open, "files cannot grow beyond 10,000 bytes", "size 10000"),
        ask(Moment::Closed, "files cannot grow beyond 20,000 bytes", "size 20000"),
    ]
}

/// Ends of the process, and pauses.
fn ends() -> Vec<Accident> {
    vec![
        accident(Moment::Open, "exec", |stage| {
            if stage.history.iter().any(|what| what.starts_with("deny read")) {
                return Err("the program cannot be read".into());
            }
            if stage.is_open {
                stage.ask("exec");
                stage.open();
            }
            Ok(())
        }),
        accident(Moment::Open, "SIGKILL between two writes", |stage| {
            stage.kill();
            stage.open();
            Ok(())
        }),
        accident(Moment::Open, "SIGKILL at any moment", kill_at_any_moment),
        accident(Moment::Open, "SIGSTOP while others open the store", stop),
    ]
}

fn kill_at_any_moment(stage: &mut Stage) -> Played {
    if stage.is_open {
        let from = stage.ledger.next;
        stage.ledger.tried.extend(from..from + 100_000);
        let lines = 20 + from as usize % 60;
        stage.child().send(&format!("run {from} buffer"));
        let told = (0..lines).map_while(|_| stage.child().line()).collect::<Vec<_>>();
        stage.child().kill();
        let rest: Vec<_> = std::iter::from_fn(|| stage.child().line()).collect();
        for line in told.iter().chain(&rest).filter_map(|line| line.strip_prefix("> ")) {
            stage.ledger.note(line);
        }
        stage.kill();
    }
    stage.open();
    Ok(())
}

fn stop(stage: &mut Stage) -> Played {
    let (Some(child), data) = (&stage.child, stage.data()) else { return Ok(()) };
    let id = child.id();
    system::signal(id, libc::SIGSTOP);
    let mut other = Process::start(&stage.root);
    let opened = other.ask(&format!("open {}", data.display()));
    let looked = other.ask(&format!("look {}", data.display()));
    let read = other.ask("read");
    stage.note(format!("others: {opened:?} {looked:?} {}", read.lines.len()));
    if dice::full() {
        // As long as a machine sleeps, or a debugger holds it: nothing may time out meanwhile.
        std::thread::sleep(std::time::Duration::from_secs(60));
        let late = other.ask(&format!("open {}", data.display()));
        stage.note(format!("after a minute: {late:?}"));
        if opened.error().is_some() && late.is_ok() {
            stage.fail("a process that is stopped has lost its lock");
        }
    }
    system::signal(id, libc::SIGCONT);
    if stage.is_open && data.join("CURRENT").exists() && opened.is_ok() {
        stage.write(5);
    }
    Ok(())
}
