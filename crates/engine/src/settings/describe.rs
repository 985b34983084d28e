//! What faces need to show a setting: its group, and what it takes.

use super::{Kind, Setting};
use crate::api::views::SettingKind;

/// Groups by what the key begins with; the first that fits.
const GROUPS: &[(&str, &str)] = &[
    ("notice.", "Notices"),
    ("quiet.", "Notices"),
    ("public_url", "Public address"),
    ("tunnel.", "Public address"),
    ("push.", "Public address"),
    ("retention.", "Storage"),
    ("proof.", "Security"),
    ("gateway.", "Security"),
    ("follow.", "Following"),
];

impl Setting {
    /// The heading under which it is shown.
    pub fn group(&self) -> &'static str {
        GROUPS.iter().find(|(start, _)| self.key.starts_with(start)).map_or("General", |(_, group)| group)
    }

    /// What it takes.
    pub fn takes(&self) -> SettingKind {
        let text = |what: &str| SettingKind::Text { what: what.to_owned() };
        match self.kind {
            Kind::Words(words) => {
                SettingKind::Words { words: words.iter().map(ToString::to_string).collect() }
            }
            Kind::Seconds { least, most } => {
                SettingKind::Number { unit: "seconds".to_owned(), least, most, whole: false }
            }
            Kind::Days { least, most } => SettingKind::Number {
                unit: "days".to_owned(),
                least: f64::from(least),
                most: f64::from(most),
                whole: true,
            },
            Kind::PublicAddress => text("an https address, or nothing"),
            Kind::Command => text("a command line, or nothing"),
            Kind::TimeOfDay => text("a time of day as 22:00, or nothing"),
            Kind::NoticeKinds => text("kinds of notices with commas between, or nothing"),
        }
    }

    /// Whether its value may hold a secret, as a command line may: such a value is in no export and no diagnostics.
    pub fn may_hold_a_secret(&self) -> bool {
        matches!(self.kind, Kind::Command)
    }
}
