//! Peers' text on a terminal, line by line. Single lines are `taskbell_core::text`'s matter.

use taskbell_core::text;

/// No text of a peer is longer than this on one line of a terminal.
const LINE_LENGTH: usize = 4000;

/// `text` as clean lines. Indentation stays (four columns a tab), since it carries meaning in code; blank lines
/// at the end go. Nothing that moves, hides or recolours passes.
pub fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let indent: usize = line
                .chars()
                .map_while(|c| match c {
                    ' ' => Some(1),
                    '\t' => Some(4),
                    _ => None,
                })
                .sum();
            let words = text::one_line(line, LINE_LENGTH);
            if words.is_empty() { words } else { format!("{:1$}{words}", "", indent.min(40)) }
        })
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The first line that says something.
pub fn headline(text: &str) -> String {
    text.lines().map(text::plain).find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "fine\u{1b}[2J\n  \u{1b}]8;;https://evil.example\u{7}click\u{1b}]8;;\u{7}\n\
        \u{9b}31mred\r\rover\u{8}\u{8}\n\u{1b}P+q\u{1b}\\\u{202e}reversed\u{202c}\nlast\n\n";

    #[test]
    fn no_escape_sequence_of_a_peer_reaches_the_terminal() {
        let clean = lines(HOSTILE).join("\n");
        assert_eq!(clean, "fine\n  click\nred over\nreversed\nlast");
        assert!(clean.chars().all(|c| c == '\n' || !c.is_control()), "{clean:?}");
    }

    #[test]
    fn indentation_of_code_stays() {
        assert_eq!(lines("def f():\n\treturn 1\n    # end\n\n"), ["def f():", "    return 1", "    # end"]);
    }

    #[test]
    fn a_headline_is_the_first_line_that_says_something() {
        assert_eq!(headline("\n \u{1b}[0m\n Which colour?\nred or blue"), "Which colour?");
        assert_eq!(headline(""), "");
    }
}
