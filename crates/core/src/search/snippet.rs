//! The place in a text where a query's words stand.

use super::Word;
use super::words::{Token, tokens};

/// Characters shown before the first hit.
const BEFORE: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnippetPart {
    pub text: String,
    /// It is what was looked for.
    pub hit: bool,
}

/// A line of a text around the first hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// To be joined; neighbours differ in `hit`.
    pub parts: Vec<SnippetPart>,
    /// How many of the words stand anywhere in the text.
    pub words: usize,
}

/// The line of `text` around the first of `words`, of `most` characters and two ellipses; none where no word stands
/// in it. `text` is one clean line.
pub fn snippet(text: &str, words: &[Word], most: usize) -> Option<Snippet> {
    let found = tokens(text);
    let mut hits: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    for word in words {
        let before = hits.len();
        hits.extend(places(&found, word));
        count += usize::from(hits.len() > before);
    }
    hits.sort_unstable();
    let (first, _) = *hits.first()?;
    let characters: Vec<char> = text.chars().collect();
    let end_at = |start: usize| start.saturating_add(most).min(characters.len());
    let mut start = first.saturating_sub(BEFORE);
    if start > 0 {
        // Not in the middle of a word, unless that would lose the hit.
        start = (start..first).find(|at| characters[at - 1].is_whitespace()).unwrap_or(start);
    }
    let end = end_at(start);
    if end == characters.len() {
        start = start.min(end.saturating_sub(most));
    }
    let mut parts: Vec<SnippetPart> = Vec::new();
    let mut add = |piece: &[char], hit: bool| {
        if piece.is_empty() {
            return;
        }
        match parts.last_mut() {
            Some(last) if last.hit == hit => last.text.extend(piece),
            _ => parts.push(SnippetPart { text: piece.iter().collect(), hit }),
        }
    };
    if start > 0 {
        add(&['…'], false);
    }
    let mut at = start;
    for (from, to) in hits {
        let (from, to) = (from.max(at), to.min(end));
        if from < to {
            add(&characters[at..from], false);
            add(&characters[from..to], true);
            at = to;
        }
    }
    add(&characters[at..end], false);
    if end < characters.len() {
        add(&['…'], false);
    }
    Some(Snippet { parts, words: count })
}

/// Where a word, or the words of a phrase in their order, stand.
fn places(text: &[Token], word: &Word) -> Vec<(usize, usize)> {
    let wanted = tokens(&word.text);
    let Some((last, before)) = wanted.split_last() else { return Vec::new() };
    let fits = |window: &&[Token]| {
        let Some((end, start)) = window.split_last() else { return false };
        let is_last = if word.begins && word.text.chars().nth(1).is_some() {
            end.folded.starts_with(&last.folded)
        } else {
            end.folded == last.folded
        };
        is_last && start.iter().zip(before).all(|(one, other)| one.folded == other.folded)
    };
    let span = |window: &[Token]| Some((window.first()?.start, window.last()?.end));
    text.windows(wanted.len()).filter(fits).filter_map(span).collect()
}
