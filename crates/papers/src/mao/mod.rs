//! Mao, Jacobs, Amjad, Hristidis, Tsotras, Young, "Comparison and evaluation of state-of-the-art
//! LSM merge policies", VLDB Journal 2021.
//!
//! Write costs count as in the paper's system: every flush is written once, and every merge writes
//! its output. `fig9`, `fig10`, `fig11` and `compression` measure the real store, because the paper
//! measured a system. All other figures are simulated; the paper shows that this is enough.

pub(super) mod compression;
pub(super) mod count;
mod course;
pub(super) mod deletes;
pub(super) mod fig10;
pub(super) mod fig11;
pub(super) mod fig12;
pub(super) mod fig3;
pub(super) mod fig4;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
pub(super) mod fig8;
pub(super) mod fig9;
mod fit;
pub(super) mod sizes;
mod store;
pub(super) mod table1;
mod updates;
