//! Words as the full text index has them: runs of letters and digits, in one case, without accents. Scripts that do
//! not divide words by spaces are indexed letter by letter, and found as phrases of letters.

use super::Word;

/// A letter of a script that is written without spaces between words.
fn stands_alone(character: char) -> bool {
    matches!(u32::from(character),
        0x0E00..=0x0EFF     // Thai, Lao
        | 0x1000..=0x109F   // Myanmar
        | 0x1780..=0x17FF   // Khmer
        | 0x3040..=0x30FF   // Hiragana, Katakana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF   // Han
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9D
        | 0x20000..=0x3FFFF)
}

/// A text as it is given to the index: letters that stand alone with spaces around them.
pub fn index_text(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(stands_alone) {
        return text.into();
    }
    let mut spaced = String::with_capacity(text.len() * 4 / 3);
    for character in text.chars() {
        let alone = stands_alone(character);
        // A letter before them is another word than they are.
        if alone && !spaced.ends_with(' ') {
            spaced.push(' ');
        }
        spaced.push(character);
        if alone {
            spaced.push(' ');
        }
    }
    spaced.into()
}

pub(super) fn has_letters(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// One word as FTS5 takes it, quoted.
fn quoted(word: &Word) -> String {
    let text = index_text(&word.text).replace('"', "\"\"").replace('\0', " ");
    // A beginning of one letter would be found in every second text, slowly.
    let begins = word.begins && word.text.chars().nth(1).is_some();
    format!("\"{}\"{}", text.trim(), if begins { "*" } else { "" })
}

pub(super) fn all_of(words: &[Word]) -> Option<String> {
    let all: Vec<String> = words.iter().map(quoted).collect();
    (!all.is_empty()).then(|| all.join(" AND "))
}

pub(super) fn any_of(words: &[Word]) -> Option<String> {
    let all: Vec<String> = words.iter().map(quoted).collect();
    (!all.is_empty()).then(|| all.join(" OR "))
}

/// A word of a text and where it stands, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub folded: String,
    pub start: usize,
    pub end: usize,
}

/// The words of a text, folded as the index folds them.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut open = false;
    for (at, character) in text.chars().enumerate() {
        if is_mark(character) && open {
            // Belongs to the letter before it, and is dropped.
            if let Some(token) = found.last_mut() {
                token.end = at + 1;
            }
            continue;
        }
        if !character.is_alphanumeric() {
            open = false;
            continue;
        }
        let alone = stands_alone(character);
        if alone || !open {
            found.push(Token { folded: String::new(), start: at, end: at });
        }
        open = !alone;
        if let Some(token) = found.last_mut() {
            token.folded.extend(character.to_lowercase().map(without_accent).filter(|c| !is_mark(*c)));
            token.end = at + 1;
        }
    }
    found
}

fn is_mark(character: char) -> bool {
    matches!(u32::from(character), 0x0300..=0x036F)
}

/// The letters that European languages put accents on.
fn without_accent(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ĥ' => 'h',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ǐ' => 'i',
        'ĵ' => 'j',
        'ķ' => 'k',
        'ĺ' | 'ļ' | 'ľ' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ō' | 'ŏ' | 'ő' | 'ǒ' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ǔ' => 'u',
        'ŵ' => 'w',
        'ý' | 'ÿ' | 'ŷ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}
