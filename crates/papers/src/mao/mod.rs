//! Mao, Jacobs, Amjad, Hristidis, Tsotras, Young, "Comparison and evaluation of state-of-the-art
//! LSM merge policies", VLDB Journal 2021.
//!
//! Write costs count as in the paper's system: every flush is written once, and every merge writes
//! its output. `fig9`, `fig10`, `fig11` and `compression` measure the real store, because the paper
//! measured a system. All other figures are simulated; the paper shows that this is enough.

mod compression;
mod count;
mod course;
mod deletes;
mod fig10;
mod fig11;
mod fig12;
mod fig3;
mod fig4;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod fit;
mod sizes;
mod store;
mod table1;
mod updates;

pub(super) use compression::measure as compression;
pub(super) use count::measure as count;
pub(super) use deletes::measure as deletes;
pub(super) use fig3::measure as fig3;
pub(super) use fig4::measure as fig4;
pub(super) use fig5::measure as fig5;
pub(super) use fig6::measure as fig6;
pub(super) use fig7::measure as fig7;
pub(super) use fig8::measure as fig8;
pub(super) use fig9::measure as fig9;
pub(super) use fig10::measure as fig10;
pub(super) use fig11::measure as fig11;
pub(super) use fig12::measure as fig12;
pub(super) use sizes::measure as sizes;
pub(super) use table1::measure as table1;
