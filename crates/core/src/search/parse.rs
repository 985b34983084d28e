//! From a text to a query.

use super::words::has_letters;
use super::{Choice, Is, QUERY_MAX, Query, Screen, StateWord, Via, Word};
use crate::ids::AgentName;
use crate::verdict::Verdict;

const TASK_KEYS: &[&str] = &["state", "agent", "via", "verdict", "is", "since"];
const INBOX_KEYS: &[&str] = &["state", "agent", "verdict", "is", "since"];
/// More words than anybody types, each of which costs a look into the index.
const WORDS_MAX: usize = 32;
const YEAR_MS: i64 = 366 * 24 * 3_600_000;

/// Why a text is no query, as a sentence to stand beside the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("a query has {QUERY_MAX} characters at most")]
    TooLong,
    #[error("a query has {WORDS_MAX} words at most")]
    TooManyWords,
    #[error("a quotation mark is open: close it, or leave it out")]
    OpenQuote,
    #[error("there is nothing between the quotation marks")]
    EmptyPhrase,
    #[error("a minus stands directly before what is to be left out")]
    LoneMinus,
    #[error("{word:?} has no letter or digit to search for")]
    NoLetters { word: String },
    #[error("there is no key {key:?}: known are {known}; put the text in quotation marks to search for it")]
    UnknownKey { key: String, known: String },
    #[error("{key}: needs a value: {known}")]
    NoValue { key: &'static str, known: String },
    #[error("{value:?} is no value of {key}: it is one of {known}")]
    UnknownValue { key: &'static str, value: String, known: String },
    #[error("{text:?} is no agent's name")]
    NotAnAgentName { text: String },
    #[error("since: takes a length of time of a year at most, like 30m, 24h or 7d, and no minus")]
    NotASpan,
}

pub(super) fn parse(text: &str, screen: Screen) -> Result<Query, QueryError> {
    if text.chars().count() > QUERY_MAX {
        return Err(QueryError::TooLong);
    }
    let mut query = Query::default();
    let mut terms = Terms { rest: text };
    let mut last_is_bare = false;
    while let Some(term) = terms.next()? {
        last_is_bare = false;
        match term.key {
            Some(key) => take_filter(&mut query, screen, key, &term)?,
            None => {
                let words = if term.negated { &mut query.without } else { &mut query.words };
                if !has_letters(&term.value) {
                    return Err(QueryError::NoLetters { word: shown(&term.value) });
                }
                if words.len() == WORDS_MAX {
                    return Err(QueryError::TooManyWords);
                }
                last_is_bare = !term.negated && !term.quoted;
                words.push(Word { text: term.value, begins: false });
            }
        }
    }
    if last_is_bare && let Some(last) = query.words.last_mut() {
        last.begins = true;
    }
    Ok(query)
}

/// What a user typed, as far as a sentence may hold it.
fn shown(text: &str) -> String {
    crate::text::one_line(text, 40)
}

struct Term<'a> {
    negated: bool,
    key: Option<&'a str>,
    value: String,
    quoted: bool,
}

struct Terms<'a> {
    rest: &'a str,
}

impl<'a> Terms<'a> {
    fn next(&mut self) -> Result<Option<Term<'a>>, QueryError> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let after_minus = self.rest.strip_prefix('-');
        let negated = after_minus.is_some();
        if let Some(after) = after_minus {
            if after.is_empty() || after.starts_with(char::is_whitespace) {
                return Err(QueryError::LoneMinus);
            }
            self.rest = after;
        }
        let key = self.key();
        let (value, quoted) = self.value()?;
        Ok(Some(Term { negated, key, value, quoted }))
    }

    /// Letters before a colon are a key. The beginning of an address is none.
    fn key(&mut self) -> Option<&'a str> {
        let (key, after) = self.rest.split_once(':')?;
        let is_key = !key.is_empty() && key.bytes().all(|octet| octet.is_ascii_alphabetic());
        if !is_key || after.starts_with("//") {
            return None;
        }
        self.rest = after;
        Some(key)
    }

    /// Up to the next white space outside of quotation marks. A word stops where a phrase begins.
    fn value(&mut self) -> Result<(String, bool), QueryError> {
        if let Some(after) = self.rest.strip_prefix('"') {
            let (phrase, rest) = after.split_once('"').ok_or(QueryError::OpenQuote)?;
            if phrase.trim().is_empty() {
                return Err(QueryError::EmptyPhrase);
            }
            self.rest = rest;
            return Ok((phrase.trim().to_owned(), true));
        }
        let ends = |c: char| c.is_whitespace() || c == '"';
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        Ok((word.to_owned(), false))
    }
}

fn take_filter(query: &mut Query, screen: Screen, key: &str, term: &Term<'_>) -> Result<(), QueryError> {
    let keys = match screen {
        Screen::Tasks => TASK_KEYS,
        Screen::Inbox => INBOX_KEYS,
    };
    let lower = key.to_ascii_lowercase();
    let Some(key) = keys.iter().copied().find(|known| *known == lower) else {
        let known = keys.iter().map(|key| format!("{key}:")).collect::<Vec<_>>().join(" ");
        return Err(QueryError::UnknownKey { key: shown(key), known });
    };
    let value = term.value.to_lowercase();
    let values: Vec<&str> = if value.is_empty() { Vec::new() } else { value.split(',').collect() };
    match key {
        "state" => {
            let states: Vec<StateWord> = StateWord::all().collect();
            take(&mut query.states, key, &values, term.negated, &states, |state| state.word())
        }
        "via" => take(&mut query.via, key, &values, term.negated, &Via::ALL, |via| via.word()),
        "verdict" => {
            take(&mut query.verdicts, key, &values, term.negated, verdicts(screen), |verdict| verdict.word())
        }
        "is" => {
            let known: &[Is] = match screen {
                Screen::Tasks => &Is::ALL,
                Screen::Inbox => &[Is::Open],
            };
            for is in read(key, &values, known, |is| is.word())? {
                query.is.push((is, !term.negated));
            }
            Ok(())
        }
        "agent" => {
            if values.is_empty() {
                return Err(QueryError::NoValue { key, known: "the name of an agent".to_owned() });
            }
            let side = if term.negated { &mut query.agents.none } else { &mut query.agents.any };
            for name in values {
                let name =
                    AgentName::new(name).map_err(|_| QueryError::NotAnAgentName { text: shown(name) })?;
                side.push(name);
            }
            Ok(())
        }
        _since => {
            let span = if term.negated { None } else { span_ms(&value) };
            query.since_ms = Some(span.ok_or(QueryError::NotASpan)?);
            Ok(())
        }
    }
}

/// Callbacks that were rejected belong to no task.
fn verdicts(screen: Screen) -> &'static [Verdict] {
    const OF_TASKS: &[Verdict] = &[
        Verdict::Pending,
        Verdict::Confirmed,
        Verdict::Ahead,
        Verdict::Behind,
        Verdict::Duplicate,
        Verdict::Unmatched,
        Verdict::Unreachable,
    ];
    match screen {
        Screen::Tasks => OF_TASKS,
        Screen::Inbox => &Verdict::ALL,
    }
}

fn take<T: Copy>(
    choice: &mut Choice<T>,
    key: &'static str,
    values: &[&str],
    negated: bool,
    known: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<(), QueryError> {
    let read = read(key, values, known, word)?;
    if negated { &mut choice.none } else { &mut choice.any }.extend(read);
    Ok(())
}

fn read<T: Copy>(
    key: &'static str,
    values: &[&str],
    known: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, QueryError> {
    let all = || known.iter().map(|value| word(*value)).collect::<Vec<_>>().join(", ");
    if values.is_empty() {
        return Err(QueryError::NoValue { key, known: all() });
    }
    let find = |value: &&str| {
        let found = known.iter().copied().find(|known| word(*known) == *value);
        found.ok_or_else(|| QueryError::UnknownValue { key, value: shown(value), known: all() })
    };
    values.iter().map(find).collect()
}

/// `30m`, `24h`, `7d`, `2w`.
fn span_ms(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let scale = match unit {
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(scale).filter(|ms| (1..=YEAR_MS).contains(ms))
}
