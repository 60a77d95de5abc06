//! The kinds of power loss.

/// Says which unsynced changes a power loss destroys. Synced changes stay.
///
/// Changes become durable in parts: each 512-byte sector of a log, each 4 KiB page of another file,
/// each length, each page of a hole, each creation, removal and rename. A rename is one part within
/// a directory; across directories it is two. A part that does not survive is as it was before;
/// space that was never written is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Loss {
    /// All changes reached the device in time.
    Nothing,
    /// No change reached the device.
    Everything,
    /// Each part survives with this probability (0 to 1), independently of the others. A sector of
    /// a log may also have been stored between two appends.
    Parts {
        /// The probability.
        keep: f64,
    },
    /// Like `Parts` with probability one half, but unsynced parts of files may also hold a mixture
    /// of old and written bytes, or garbage.
    Torn {
        /// True if sectors of logs are torn too. Each of their 8-byte words is then old or written.
        /// The log format relies on devices that store a sector as a whole or not at all.
        logs: bool,
    },
    /// The changes up to a random moment survive, later ones do not.
    Later,
    /// The changes after a random moment survive, earlier ones do not: devices and file systems
    /// change the order.
    Earlier,
    /// Names survive, the contents of files do not.
    Contents,
    /// Contents of files survive, names do not.
    Names,
}

impl Loss {
    /// Every class, as harsh as a correct store can survive.
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
