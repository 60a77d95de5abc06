//! What power loss may take.

/// Which of the changes that were not synced a loss of power takes. What was synced stays.
///
/// Changes are made durable in parts: each 512-byte sector of a log, each 4 KiB page of another
/// file, each length, each page of a hole, each creation, removal and rename (a rename happened as
/// a whole or not at all; across directories, its two halves are apart). A part that did not
/// survive is as it was: where nothing was before, zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// Everything got to the device in time.
    Nothing,
    /// Nothing did.
    Everything,
    /// Each part survives with this probability (0 to 1), whatever happens to the others. A sector
    /// of a log may also have been stored between two appends.
    Parts {
        /// The probability.
        keep: f64,
    },
    /// As with a probability of one half, but parts of files that were on their way hold a mixture
    /// of what was there and what was written, or garbage.
    Torn {
        /// Whether that goes for sectors of logs too, which then hold any of their 8-byte words.
        /// The log format relies on devices that store a sector as a whole or not at all.
        logs: bool,
    },
    /// The changes up to a random moment survive, none of those after it.
    Later,
    /// The changes after a random moment survive, none of those up to it: devices and file systems
    /// change the order.
    Earlier,
    /// Names survive, the contents of files do not.
    Contents,
    /// Contents of files survive, names do not.
    Names,
}

impl Loss {
    /// Every class, as harsh as a correct store can bear.
    pub const ALL: [Loss; 9] = [
        Loss::Nothing,
        Loss::Everything,
        Loss::Parts { keep: 0.5 },
        Loss::Parts { keep: 0.9 },
        Loss::Torn { logs: false },
        Loss::Later,
        Loss::Earlier,
        Loss::Contents,
        Loss::Names,
    ];
}
