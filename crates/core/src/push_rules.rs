//! What a client may register to be called back: judged before anything is stored or looked up.

use std::fmt;

use crate::credential::Secret;
use crate::dialect::Dialect;
use crate::push_body::BodyForm;
use crate::push_config::PushConfig;
use crate::target::{CallbackTarget, LoopbackTarget, Refusal};

/// Configs of one task.
pub const CONFIGS_A_TASK: usize = 20;
const TOKEN_MOST: usize = 1_024;
const CREDENTIALS_MOST: usize = 4_096;
const ID_MOST: usize = 128;

/// A member of a config, by the name that the caller's dialect has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Id,
    Url,
    Token,
    Scheme,
    Credentials,
    Body,
}

impl Field {
    pub fn name(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Id, Dialect::V1) => "id",
            (Self::Url, Dialect::V1) => "url",
            (Self::Token, Dialect::V1) => "token",
            (Self::Scheme, Dialect::V1) => "authentication.scheme",
            (Self::Credentials, Dialect::V1) => "authentication.credentials",
            (Self::Id, Dialect::V03) => "pushNotificationConfig.id",
            (Self::Url, Dialect::V03) => "pushNotificationConfig.url",
            (Self::Token, Dialect::V03) => "pushNotificationConfig.token",
            (Self::Scheme, Dialect::V03) => "pushNotificationConfig.authentication.schemes",
            (Self::Credentials, Dialect::V03) => "pushNotificationConfig.authentication.credentials",
            (Self::Body, _) => "metadata.taskbell.body",
        }
    }
}

/// Why a config is refused. Holds no part of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRefusal {
    pub field: Field,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Target(Refusal),
    TooLong { most: usize },
    NotHeader,
    Scheme,
    Body,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(refusal) => refusal.fmt(f),
            Self::TooLong { most } => write!(f, "it is longer than {most} octets"),
            Self::NotHeader => f.write_str("it holds characters that a header cannot carry"),
            Self::Scheme => f.write_str("it must be bearer or basic"),
            Self::Body => f.write_str("it must be task or status, and status is for 0.3 alone"),
        }
    }
}

/// The schemes that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Bearer,
    Basic,
}

impl Scheme {
    /// As it is written before the credentials, and in answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Basic => "Basic",
        }
    }

    /// Read without regard to case.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Bearer, Self::Basic].into_iter().find(|scheme| scheme.word().eq_ignore_ascii_case(word))
    }
}

/// Where a config wants its callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Public(CallbackTarget),
    /// Its port has to be approved for the client.
    Loopback(LoopbackTarget),
}

impl Wanted {
    /// The text to store and to call.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Public(target) => target.as_str(),
            Self::Loopback(target) => target.as_str(),
        }
    }
}

/// A config that may be stored, once its target was looked up.
#[derive(Debug, Clone)]
pub struct Registration {
    /// Absent: to be named by us.
    pub id: Option<String>,
    pub target: Wanted,
    pub token: Option<Secret>,
    pub scheme: Option<Scheme>,
    pub credentials: Option<Secret>,
    pub dialect: Dialect,
    pub form: BodyForm,
}

/// Judges everything that the text of a config decides.
pub fn judge(config: PushConfig, dialect: Dialect) -> Result<Registration, ConfigRefusal> {
    let refused = |field, why| ConfigRefusal { field, why };
    if config.id.as_ref().is_some_and(|id| id.len() > ID_MOST) {
        return Err(refused(Field::Id, Why::TooLong { most: ID_MOST }));
    }
    let target = target(&config.url).map_err(|refusal| refused(Field::Url, Why::Target(refusal)))?;
    let token = config.notification_token.filter(|token| !token.is_empty());
    if let Some(token) = &token {
        check_value(token, TOKEN_MOST).map_err(|why| refused(Field::Token, why))?;
    }
    let (scheme, credentials) = match config.authentication {
        None => (None, None),
        Some(authentication) => {
            let scheme = Scheme::from_word(&authentication.scheme);
            let scheme = scheme.ok_or_else(|| refused(Field::Scheme, Why::Scheme))?;
            (Some(scheme), authentication.credentials)
        }
    };
    if let Some(credentials) = &credentials {
        check_value(credentials, CREDENTIALS_MOST).map_err(|why| refused(Field::Credentials, why))?;
    }
    let form = match config.metadata.get("taskbell").and_then(|ours| ours.get("body")) {
        None => BodyForm::Task,
        Some(word) => {
            let form = word.as_str().and_then(BodyForm::from_word);
            form.filter(|form| *form == BodyForm::Task || dialect == Dialect::V03)
                .ok_or_else(|| refused(Field::Body, Why::Body))?
        }
    };
    Ok(Registration { id: config.id, target, token, scheme, credentials, dialect, form })
}

fn target(url: &str) -> Result<Wanted, Refusal> {
    match LoopbackTarget::parse(url)? {
        Some(target) => Ok(Wanted::Loopback(target)),
        None => CallbackTarget::parse(url).map(Wanted::Public),
    }
}

fn check_value(secret: &Secret, most: usize) -> Result<(), Why> {
    let value = secret.expose();
    if value.len() > most {
        return Err(Why::TooLong { most });
    }
    // RFC 9110 §5.5, without what would be trimmed away.
    let visible = value.bytes().all(|b| (0x20..0x7f).contains(&b)) && value.trim() == value;
    if visible { Ok(()) } else { Err(Why::NotHeader) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::push_config;

    fn judged(value: Value, dialect: Dialect) -> Result<Registration, (Field, Why)> {
        let config = push_config::params(value).unwrap().config;
        judge(config, dialect).map_err(|refusal| (refusal.field, refusal.why))
    }

    fn with(member: &str, value: Value) -> Result<Registration, (Field, Why)> {
        let mut config = json!({ "taskId": "t", "url": "https://hooks.example.com/a" });
        config[member] = value;
        judged(config, Dialect::V1)
    }

    #[test]
    fn bearer_and_basic_are_taken_in_any_case_and_every_other_scheme_is_refused() {
        for (word, scheme) in
            [("Bearer", Scheme::Bearer), ("bearer", Scheme::Bearer), ("BASIC", Scheme::Basic)]
        {
            let taken = with("authentication", json!({ "scheme": word, "credentials": "c" })).unwrap();
            assert_eq!(taken.scheme, Some(scheme));
        }
        for word in ["Digest", "api-key", "", " bearer", "Bearer realm"] {
            let refused = with("authentication", json!({ "scheme": word, "credentials": "c" }));
            assert_eq!(refused.unwrap_err(), (Field::Scheme, Why::Scheme), "{word:?}");
        }
        let refused = with("authentication", json!({ "credentials": "c" }));
        assert_eq!(refused.unwrap_err().0, Field::Scheme, "a credential is not sent under a guess");
        let refused = with("authentication", json!({ "schemes": ["Digest", "Bearer"], "credentials": "c" }));
        assert_eq!(refused.unwrap_err().0, Field::Scheme);
    }

    #[test]
    fn an_empty_token_is_none_and_a_long_or_unsendable_one_is_refused() {
        assert!(with("token", json!("")).unwrap().token.is_none());
        assert!(with("token", json!("x".repeat(1_024))).is_ok());
        let long = with("token", json!("x".repeat(10_000)));
        assert_eq!(long.unwrap_err(), (Field::Token, Why::TooLong { most: 1_024 }));
        for bad in ["a\r\nHost: evil", "a\0", "\u{e9}", " a", "a\t"] {
            assert_eq!(with("token", json!(bad)).unwrap_err(), (Field::Token, Why::NotHeader), "{bad:?}");
        }
    }

    #[test]
    fn a_target_is_public_or_on_this_machine_and_else_refused_by_its_field() {
        assert!(matches!(with("url", json!("http://127.0.0.1:9000/")).unwrap().target, Wanted::Loopback(_)));
        assert!(matches!(
            with("url", json!("https://hooks.example.com/")).unwrap().target,
            Wanted::Public(_)
        ));
        let refused = with("url", json!("http://hooks.example.com/"));
        assert_eq!(refused.unwrap_err(), (Field::Url, Why::Target(Refusal::Scheme)));
        assert_eq!(Field::Url.name(Dialect::V1), "url");
        assert_eq!(Field::Url.name(Dialect::V03), "pushNotificationConfig.url");
    }

    #[test]
    fn the_status_alone_is_for_old_registrations() {
        let config = |body: &str| {
            json!({ "taskId": "t", "pushNotificationConfig": { "url": "https://hooks.example.com/" },
                "metadata": { "taskbell": { "body": body } } })
        };
        assert_eq!(judged(config("status"), Dialect::V03).unwrap().form, BodyForm::Status);
        assert_eq!(judged(config("task"), Dialect::V1).unwrap().form, BodyForm::Task);
        for (body, dialect) in [("status", Dialect::V1), ("all", Dialect::V03)] {
            assert_eq!(judged(config(body), dialect).unwrap_err(), (Field::Body, Why::Body));
        }
    }
}
