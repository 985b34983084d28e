//! Aligned tables that fit the terminal. Pure: the width is an argument, `None` for a file or a pipe.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::marks::DIM;

/// One cell: text as it is (already clean) and how it looks.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

/// How a column gives way when the terminal is narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Give {
    /// Never cut: ids that are copied, states.
    Keep,
    /// Cut with an ellipsis, down to so many columns.
    Cut(usize),
}

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Give)>,
    rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;

impl Table {
    pub fn new(columns: impl IntoIterator<Item = (&'static str, Give)>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The lines, the heads first. With `width` no line is wider, unless the columns that are kept whole are;
    /// `colour` says whether styles are written.
    pub fn lines(&self, width: Option<usize>, colour: bool) -> Vec<String> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(head, _)| head.width()).collect();
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cell.text.width());
            }
        }
        if let Some(limit) = width {
            self.fit(&mut widths, limit);
        }
        let heads: Vec<Cell> = self.columns.iter().map(|(head, _)| Cell::styled(*head, DIM)).collect();
        std::iter::once(&heads).chain(&self.rows).map(|row| line(row, &widths, colour)).collect()
    }

    /// Takes from the widest column that may be cut, until the line fits or nothing is left to take.
    fn fit(&self, widths: &mut [usize], limit: usize) {
        let gaps = GAP * widths.len().saturating_sub(1);
        loop {
            let total = widths.iter().sum::<usize>() + gaps;
            if total <= limit {
                return;
            }
            let widest = self
                .columns
                .iter()
                .zip(widths.iter_mut())
                .filter_map(|((_, give), width)| match give {
                    Give::Cut(least) if *width > *least => Some(width),
                    Give::Cut(_) | Give::Keep => None,
                })
                .max_by_key(|width| **width);
            let Some(widest) = widest else { return };
            *widest -= 1;
        }
    }
}

fn line(row: &[Cell], widths: &[usize], colour: bool) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = cut(&cell.text, *width);
        let padding = width - text.width();
        if colour && !text.is_empty() {
            line.push_str(&format!("{}{text}{:#}", cell.style, cell.style));
        } else {
            line.push_str(&text);
        }
        if index + 1 < row.len() {
            line.push_str(&" ".repeat(padding + GAP));
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// `text` in at most `width` columns, the last an ellipsis where something was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used < width
        })
        .collect();
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// `text` broken at spaces into lines of at most `width` columns; words that are longer are left whole.
pub fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| text.width() > *width) else { return vec![text.to_owned()] };
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut lines = Vec::new();
    let mut line = " ".repeat(indent);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if line.width() > indent && line.width() + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
        }
        if line.width() > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::marks::GREEN;

    fn table() -> Table {
        let mut table = Table::new([("TASK", Give::Keep), ("STATE", Give::Keep), ("TITLE", Give::Cut(6))]);
        table.row(["demo/1".into(), Cell::styled("✓ completed", GREEN), "a title of some length".into()]);
        table.row(["demo/longer-id".into(), "● working".into(), "日本語の題名".into()]);
        table
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen_and_not_by_octets() {
        assert_eq!(
            table().lines(None, false),
            [
                "TASK            STATE        TITLE",
                "demo/1          ✓ completed  a title of some length",
                "demo/longer-id  ● working    日本語の題名",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_title_and_never_the_id() {
        let lines = table().lines(Some(38), false);
        assert_eq!(lines[1], "demo/1          ✓ completed  a title …");
        assert_eq!(lines[2], "demo/longer-id  ● working    日本語の…");
        assert!(lines.iter().all(|line| line.width() <= 38), "{lines:?}");
        let least = table().lines(Some(10), false);
        assert!(least[2].starts_with("demo/longer-id  "), "{least:?}");
    }

    #[test]
    fn colour_changes_nothing_but_the_colour() {
        let coloured = table().lines(Some(38), true).join("\n");
        assert!(coloured.contains('\u{1b}'));
        let plain: String = coloured
            .split('\u{1b}')
            .enumerate()
            .map(|(index, piece)| if index == 0 { piece } else { piece.split_once('m').unwrap().1 })
            .collect();
        assert_eq!(plain, table().lines(Some(38), false).join("\n"));
    }

    #[test]
    fn a_cut_text_fits_whatever_the_width_of_its_letters() {
        for width in 0..12 {
            assert!(cut("日本語の題名 and more", width).width() <= width, "{width}");
        }
        assert_eq!(cut("short", 5), "short");
    }

    #[test]
    fn wrapped_lines_keep_their_indentation_and_their_words() {
        assert_eq!(wrap("  one two three", Some(9)), ["  one two", "  three"]);
        assert_eq!(wrap("unbreakably long", Some(4)), ["unbreakably", "long"]);
        assert_eq!(wrap("as it is", None), ["as it is"]);
    }
}
