//! State words with a shape and a colour. Word and shape come before colour: all of it reads without.

use anstyle::{AnsiColor, Style};
use taskbell_engine::api::views::ShownState;

use super::table::Cell;

/// How a state is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub shape: char,
    pub style: Style,
}

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(colour)))
}

pub const DIM: Style = Style::new().dimmed();
pub const BOLD: Style = Style::new().bold();
pub const AMBER: Style = colour(AnsiColor::Yellow);
pub const RED: Style = colour(AnsiColor::Red);
pub const GREEN: Style = colour(AnsiColor::Green);
pub const BLUE: Style = colour(AnsiColor::Blue);

pub fn of_state(state: ShownState) -> Mark {
    let (shape, style) = match state {
        ShownState::Submitted => ('◐', BLUE),
        ShownState::Working => ('●', BLUE),
        ShownState::InputRequired => ('▲', AMBER),
        ShownState::AuthRequired => ('◆', AMBER),
        ShownState::Completed => ('✓', GREEN),
        ShownState::Failed => ('✗', RED),
        ShownState::Rejected => ('⊘', RED),
        ShownState::Canceled => ('■', DIM),
        ShownState::Unknown => ('?', DIM),
        ShownState::Lost => ('◌', RED),
        ShownState::WrongIdentity => ('≠', RED),
    };
    Mark { shape, style }
}

/// `✓ completed` in a table.
pub fn cell(state: ShownState) -> Cell {
    let mark = of_state(state);
    Cell::styled(format!("{} {}", mark.shape, state.word()), mark.style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_shape_of_its_own_so_that_none_is_told_by_colour_alone() {
        let mut shapes = ShownState::ALL.map(|state| of_state(state).shape).to_vec();
        shapes.sort_unstable();
        shapes.dedup();
        assert_eq!(shapes.len(), ShownState::ALL.len());
    }
}
