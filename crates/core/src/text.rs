//! Peers' text as one clean line, for titles, lists, notices, logs and errors; and as clean lines, for documents.
//!
//! Takes out what could move, hide or reorder the text around it: escape sequences of terminals,
//! control characters, bidirectional overrides, invisible characters. What is left is still a
//! peer's claim, and still needs the escaping of wherever it is shown. Look-alike letters stay:
//! they are told apart by the host that is shown beside a name.

/// How long a text in a list or a notice may be, in characters.
pub const LIST_LENGTH: usize = 240;

/// `text` as one line of at most [`LIST_LENGTH`] characters.
pub fn plain(text: &str) -> String {
    one_line(text, LIST_LENGTH)
}

/// `text` as one line of at most `most` characters, the last an ellipsis where something was cut.
/// White space of any kind and amount becomes one space. Reads no further than needed.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut space_due = false;
    for character in Visible::of(text) {
        if character.is_whitespace() {
            space_due = length > 0;
            continue;
        }
        for character in std::mem::take(&mut space_due).then_some(' ').into_iter().chain([character]) {
            if length == most {
                // There is more than fits; the last that did makes room for the ellipsis.
                if line.pop().is_some() {
                    line.push('…');
                }
                return line;
            }
            line.push(character);
            length += 1;
        }
    }
    line
}

/// `text` with its lines and its indentation, for documents and code. Line breaks of every kind are `\n`.
pub fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut seen = Visible::of(text).peekable();
    while let Some(character) = seen.next() {
        match character {
            '\r' => {
                seen.next_if_eq(&'\n');
                shown.push('\n');
            }
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => shown.push('\n'),
            other => shown.push(other),
        }
    }
    shown
}

/// The characters that are seen, white space as it is.
struct Visible<'a> {
    rest: std::str::Chars<'a>,
    before: char,
}

impl<'a> Visible<'a> {
    fn of(text: &'a str) -> Self {
        Self { rest: text.chars(), before: ' ' }
    }
}

impl Iterator for Visible<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        loop {
            let seen = match self.rest.next()? {
                '\u{1b}' => {
                    skip_escape(&mut self.rest);
                    continue;
                }
                '\u{9b}' => {
                    skip_control_sequence(&mut self.rest);
                    continue;
                }
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => {
                    skip_control_string(&mut self.rest);
                    continue;
                }
                space if space.is_whitespace() => {
                    self.before = ' ';
                    return Some(space);
                }
                control if control.is_control() => continue,
                // They join and shape within scripts and emoji, and have no business in ASCII.
                joiner @ ('\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
                    if !self.before.is_ascii() && !is_invisible(self.before) =>
                {
                    joiner
                }
                hidden if is_invisible(hidden) => continue,
                other => other,
            };
            self.before = seen;
            return Some(seen);
        }
    }
}

/// What follows an ESC: a control sequence, a control string, or a short escape (ECMA-48 §5).
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            *rest = ahead;
            skip_control_sequence(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = ahead;
            skip_control_string(rest);
        }
        _ => {
            skip_while(rest, |c| matches!(c, ' '..='/'));
            skip_one_if(rest, |c| matches!(c, '0'..='~'));
        }
    }
}

fn skip_control_sequence(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |c| matches!(c, ' '..='?'));
    skip_one_if(rest, |c| matches!(c, '@'..='~'));
}

/// Up to its terminator. Any other control character ends it too, so that one that is never
/// terminated hides its own line only.
fn skip_control_string(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |c| !c.is_control());
    let mut ahead = rest.clone();
    match (ahead.next(), ahead.next()) {
        (Some('\u{1b}'), Some('\\')) => *rest = ahead,
        (Some('\u{7}' | '\u{9c}'), _) => skip_one_if(rest, |_| true),
        _ => {}
    }
}

fn skip_while(rest: &mut std::str::Chars<'_>, wanted: impl Fn(char) -> bool) {
    let text = rest.as_str();
    *rest = text.trim_start_matches(wanted).chars();
}

fn skip_one_if(rest: &mut std::str::Chars<'_>, wanted: impl Fn(char) -> bool) {
    let mut ahead = rest.clone();
    if ahead.next().is_some_and(wanted) {
        *rest = ahead;
    }
}

/// Characters without a shape of their own: formats, bidirectional marks, fillers, variation
/// selectors, tags. Unicode's Default_Ignorable_Code_Point and the rest of Cf outside the scripts
/// that need theirs.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_of_any_kind_becomes_one_space() {
        assert_eq!(plain("  a\t\r\n b\u{2028}c\u{2029}d\u{85}e\u{a0}\u{3000}f \n"), "a b c d e f");
        assert_eq!(plain(" \n\t"), "");
    }

    #[test]
    fn escape_sequences_go_whole_and_text_after_them_stays() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m \u{9b}1mbold"), "red bold");
        assert_eq!(plain("\u{1b}]0;title\u{1b}\\a\u{9d}0;title\u{9c}b\u{1b}Pq\u{7}c"), "abc");
        assert_eq!(plain("\u{1b}(Ba\u{1b}cb\u{1b}"), "ab");
        assert_eq!(plain("\u{1b}]0;never ended\nnext line"), "next line");
        assert_eq!(plain("\u{1b}[31é"), "é", "a sequence that breaks off takes nothing else along");
    }

    #[test]
    fn what_reorders_or_hides_is_taken_out() {
        assert_eq!(
            plain("a\u{202e}b\u{2066}c\u{2069}d\u{200e}e\u{ad}f\u{feff}g\u{e0041}h\0i\u{7f}j"),
            "abcdefghij"
        );
    }

    #[test]
    fn joiners_stay_within_scripts_and_emoji_and_leave_ascii() {
        assert_eq!(plain("👩\u{200d}💻 می\u{200c}خواهم ❤\u{fe0f}"), "👩\u{200d}💻 می\u{200c}خواهم ❤\u{fe0f}");
        assert_eq!(plain("a\u{2028}\u{200d}b"), "a b");
        assert_eq!(plain("pay\u{200d}pal\u{200c} x\u{fe0f} é\u{200d}\u{200d}\u{200d}"), "paypal x é\u{200d}");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_with_an_ellipsis() {
        assert_eq!(one_line("ééééé", 5), "ééééé");
        assert_eq!(one_line("éééééé", 5), "éééé…");
        assert_eq!(one_line("ab  cd", 3), "ab…");
        assert_eq!(one_line("abc \n", 3), "abc", "white space alone is nothing that was cut");
        assert_eq!(one_line("a", 0), "");
    }

    #[test]
    fn lines_and_indentation_stay_in_a_document() {
        assert_eq!(lines("a\r\n\tb\rc\u{2028}d\n"), "a\n\tb\nc\nd\n");
        assert_eq!(lines("\u{1b}[31mred\u{1b}[0m\u{202e}\0 \u{a0}x"), "red \u{a0}x");
    }

    proptest! {
        #[test]
        fn lines_hold_no_control_but_breaks_and_tabs(text in any::<String>()) {
            let shown = lines(&text);
            prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(lines(&shown), shown, "cleaning twice changes nothing");
        }

        #[test]
        fn the_result_is_one_clean_line_of_the_length_asked_for(text in any::<String>(), most in 0_usize..40) {
            let line = one_line(&text, most);
            prop_assert!(line.chars().count() <= most);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(line.trim(), line.as_str());
            prop_assert_eq!(one_line(&line, most), line, "cleaning twice changes nothing");
        }
    }
}
