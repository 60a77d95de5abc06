//! The registry of all figures.

use crate::FigureInfo;
use crate::{
    advice, jungle, jungle_fig6, jungle_nodes, jungle_reads, jungle_tuned, lsmtk, mao, msls,
    optimum, thonangi,
};
use lsmith_spec::SpecError;

/// All figures, by paper and number.
pub const FIGURES: &[FigureInfo] = &[
    advice::FIGURE,
    jungle::FIGURE,
    jungle_fig6::FIGURE,
    jungle_nodes::FIGURE,
    jungle_reads::FIGURE,
    jungle_tuned::FIGURE,
    lsmtk::FIGURE,
    mao::compression::FIGURE,
    mao::count::FIGURE,
    mao::deletes::FIGURE,
    mao::fig3::FIGURE,
    mao::fig4::FIGURE,
    mao::fig5::FIGURE,
    mao::fig6::FIGURE,
    mao::fig7::FIGURE,
    mao::fig8::FIGURE,
    mao::fig9::FIGURE,
    mao::fig10::FIGURE,
    mao::fig11::FIGURE,
    mao::fig12::FIGURE,
    mao::sizes::FIGURE,
    mao::table1::FIGURE,
    msls::unique::FIGURE,
    msls::wa::FIGURE,
    msls::skew::FIGURE,
    msls::buffer::FIGURE,
    msls::levels::FIGURE,
    msls::throughput::FIGURE,
    msls::density::FIGURE,
    msls::rocksdb::FIGURE,
    msls::designs::FIGURE,
    optimum::FIGURE,
    thonangi::density::FIGURE,
    thonangi::fig2::FIGURE,
    thonangi::over_time::FIG3,
    thonangi::over_time::FIG4,
    thonangi::fig5::FIGURE,
    thonangi::fig6::uniform::FIGURE,
    thonangi::fig6::normal::FIGURE,
    thonangi::fig6::tpc::FIGURE,
    thonangi::fig7::FIGURE,
    thonangi::fig8::FIGURE,
    thonangi::fig9::UNIFORM,
    thonangi::fig10::NORMAL,
    thonangi::caches::FIGURE,
    thonangi::fig10::UNIFORM,
    thonangi::levels::FIGURE,
    thonangi::fig9::NORMAL,
    thonangi::queries::FIGURE,
];

/// Returns the figure with this name.
///
/// # Errors
/// Fails if there is none; the error suggests the nearest name.
pub fn figure_named(name: &str) -> Result<&'static FigureInfo, SpecError> {
    let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
    let found = FIGURES.iter().find(|figure| figure.name == name);
    found.ok_or_else(|| SpecError::unknown("figure", name, &names))
}
