//! A disk of a reader on which the writer acts between two looks of the reader.

use crate::scripted::{Call, Op, Script, Scripted, When};
use lsmith::env::MemEnv;
use std::io;
use std::sync::Mutex;

/// What happens, and how many looks at the disk come before it.
type Act = (usize, Box<dyn FnOnce() + Send>);

/// Something may happen after one of the next looks at the disk.
#[derive(Default)]
pub(crate) struct Meeting(Mutex<Option<Act>>);

impl Meeting {
    pub(crate) fn over(disk: MemEnv) -> Scripted<Meeting> {
        Scripted::new(disk, Meeting::default())
    }

    /// Has `act` done after `looks` more looks at the disk, and one more.
    pub(crate) fn after(&self, looks: usize, act: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some((looks, Box::new(act)));
    }

    /// Takes back what has not happened yet. Returns true if there was something.
    pub(crate) fn call_off(&self) -> bool {
        self.0.lock().unwrap().take().is_some()
    }

    fn look(&self) {
        let mut next = self.0.lock().unwrap();
        let act = match next.take() {
            Some((0, act)) => act,
            Some((looks, act)) => return *next = Some((looks - 1, act)),
            None => return,
        };
        drop(next);
        act();
    }
}

impl Script for Meeting {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        if matches!(call.op, Op::List | Op::Open) && call.when != When::Before {
            self.look();
        }
        Ok(())
    }
}
