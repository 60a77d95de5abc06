//! Draws the graph of a tree's tables.

use anyhow::{Context, anyhow};
use plotters::drawing::IntoDrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::prelude::{Color, IntoFont, RGBColor, SVGBackend, WHITE};
use std::fmt::Debug;
use std::path::Path;

const WIDTH: i32 = 1200;
/// The height of a row, and of the box in it, in pixels.
const ROW: i32 = 44;
const BOX: i32 = 30;
/// The room to the left of the boxes, and on the other sides.
const LEFT: i32 = 90;
const MARGIN: i32 = 30;
/// The width of a letter in a box.
const LETTER: i32 = 8;

/// Colours of levels of the tree, youngest first; light, because names are written on them.
const COLOURS: [RGBColor; 7] = [
    RGBColor(240, 228, 160),
    RGBColor(160, 205, 235),
    RGBColor(150, 220, 190),
    RGBColor(235, 185, 150),
    RGBColor(225, 180, 210),
    RGBColor(200, 200, 200),
    RGBColor(180, 190, 240),
];

/// A picture of tables: a row per level of their graph, newest first, with keys from left to right.
/// So whatever lies above a table and shares keys with it is newer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TablesPicture {
    /// The tables of each row.
    pub rows: Vec<Vec<TableBox>>,
}

/// A table in a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct TableBox {
    /// Its name.
    pub name: String,
    /// Its level in the tree, which has a colour.
    pub level: usize,
    /// Where its keys begin and end: shares of the width, from 0 to 1.
    pub keys: (f64, f64),
}

impl TablesPicture {
    /// Returns the text of an SVG file.
    ///
    /// # Errors
    /// Fails if the picture cannot be drawn.
    pub fn svg(&self) -> anyhow::Result<String> {
        let height = 2 * MARGIN + 60 + ROW * self.rows.len() as i32;
        let mut drawing = String::new();
        {
            let size = (WIDTH as u32, height as u32);
            let root = SVGBackend::with_string(&mut drawing, size).into_drawing_area();
            root.fill(&WHITE).map_err(failed)?;
            let text = |words: String, at: (i32, i32)| {
                root.draw(&Text::new(words, at, ("sans-serif", 14).into_font())).map_err(failed)
            };
            text("keys from left to right; a table is newer than those below it".into(), {
                (LEFT, MARGIN / 2)
            })?;
            for (index, row) in self.rows.iter().enumerate() {
                let top = MARGIN + 10 + ROW * index as i32;
                text(format!("row {index}"), (MARGIN, top + BOX / 2 - 7))?;
                for table in row {
                    let (left, right) = (place(table.keys.0), place(table.keys.1));
                    let right = right.max(left + 1);
                    let colour = colour(table.level);
                    let corners = [(left, top), (right, top + BOX)];
                    root.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)?;
                    root.draw(&Rectangle::new(corners, RGBColor(90, 90, 90).stroke_width(1)))
                        .map_err(failed)?;
                    if right - left > LETTER * table.name.len() as i32 + 4 {
                        text(table.name.clone(), (left + 4, top + BOX / 2 - 7))?;
                    }
                }
            }
            let levels = self.rows.iter().flatten().map(|table| table.level).max();
            let y = MARGIN + 20 + ROW * self.rows.len() as i32;
            for level in 0..=levels.unwrap_or(0) {
                let x = LEFT + 90 * level as i32;
                let corners = [(x, y), (x + 16, y + 16)];
                root.draw(&Rectangle::new(corners, colour(level).filled())).map_err(failed)?;
                text(format!("L{level}"), (x + 22, y + 1))?;
            }
            root.present().map_err(failed)?;
        }
        Ok(drawing)
    }

    /// Draws the picture into the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let message = || format!("cannot write {}", path.display());
        std::fs::write(path, self.svg()?).with_context(message)
    }
}

fn colour(level: usize) -> RGBColor {
    COLOURS[level % COLOURS.len()]
}

/// Returns the pixel for a share of the width.
fn place(share: f64) -> i32 {
    LEFT + (f64::from(WIDTH - LEFT - MARGIN) * share.clamp(0.0, 1.0)) as i32
}

/// Converts an error of the drawing library, because its errors borrow from the drawing.
fn failed(error: impl Debug) -> anyhow::Error {
    anyhow!("the tables cannot be drawn: {error:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_a_box_and_wide_ones_have_names() {
        let table = |name: &str, level, keys| TableBox { name: name.into(), level, keys };
        let rows = vec![
            vec![table("t9", 0, (0.0, 1.0))],
            vec![table("t5", 1, (0.1, 0.5)), table("t6", 1, (0.9, 0.901))],
        ];
        let picture = TablesPicture { rows };
        let drawing = picture.svg().unwrap();
        assert!(drawing.contains("\nt9\n") && drawing.contains("\nt5\n"));
        assert!(!drawing.contains("\nt6\n"), "too narrow for its name");
        // The ground, two rectangles per table, two levels in the legend.
        assert_eq!(drawing.matches("<rect").count(), 1 + 2 * 3 + 2);
        assert!(TablesPicture::default().svg().unwrap().starts_with("<svg "));
    }
}
