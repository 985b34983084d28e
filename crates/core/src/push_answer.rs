//! What agents answer to our registrations: read in every shape that was seen, with the echo of a secret
//! kept apart from the rest, so that it can be noted and is never stored or shown.

use serde_json::Value;

use crate::credential::Secret;
use crate::dialect::read::{Members, ReadFault};
use crate::push_config::{PushConfig, authentication};

/// A registration as its agent tells it.
#[derive(Debug, Clone)]
pub struct PushAnswer {
    /// The id by which the agent knows it, where it says one.
    pub config_id: Option<String>,
    pub url: Option<String>,
    /// What came under `token`: our secret, where the agent echoes it, or stars.
    pub token: Option<Secret>,
    /// What came under `credentials`.
    pub credentials: Option<Secret>,
}

/// One page of a task's registrations.
#[derive(Debug, Clone, Default)]
pub struct PushPage {
    pub configs: Vec<PushAnswer>,
    /// Entries that are no registration.
    pub unreadable: usize,
    pub next_page_token: Option<String>,
}

/// The answer to a create or get: flat, or nested under `pushNotificationConfig` or `config`, or the
/// ProtoJSON resource whose `name` ends with the id. An empty answer is an agent that says nothing.
pub fn config(value: Value) -> Result<PushAnswer, ReadFault> {
    if value.is_null() {
        return Ok(PushAnswer { config_id: None, url: None, token: None, credentials: None });
    }
    let mut outer = Members::of(value, "push config")?;
    let named = outer.text(&["name"])?;
    let outer_id = outer.text(&["configId", "config_id"])?;
    let mut nested = outer.take(&["pushNotificationConfig", "push_notification_config", "config"]);
    if let Some(Value::Object(map)) = &mut nested
        && let Some(inner) = map.remove("pushNotificationConfig")
    {
        nested = Some(inner);
    }
    let flat = members(&mut outer)?;
    let inner = match nested {
        None => None,
        Some(value) => Some(members(&mut Members::of(value, "push config")?)?),
    };
    let last_segment = |name: String| name.rsplit('/').next().map(str::to_owned);
    let inner = inner.unwrap_or(PushAnswer { config_id: None, url: None, token: None, credentials: None });
    Ok(PushAnswer {
        config_id: inner
            .config_id
            .or(flat.config_id)
            .or(outer_id)
            .or(named.and_then(last_segment))
            .filter(|id| !id.is_empty()),
        url: inner.url.or(flat.url),
        token: inner.token.or(flat.token),
        credentials: inner.credentials.or(flat.credentials),
    })
}

fn members(members: &mut Members) -> Result<PushAnswer, ReadFault> {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(PushAnswer {
        config_id: filled(members.text(&["id"])?),
        url: filled(members.text(&["url"])?),
        token: filled(members.text(&["token"])?).map(Secret::new),
        credentials: match members.take(&["authentication"]) {
            None => None,
            Some(value) => authentication(value)?.and_then(|authentication| authentication.credentials),
        },
    })
}

/// The answer to a list: a bare array (0.3, and one server of 1.0), `{configs, nextPageToken}`, or nothing.
pub fn page(value: Value) -> Result<PushPage, ReadFault> {
    let (items, next_page_token) = match value {
        Value::Null => (Vec::new(), None),
        Value::Array(items) => (items, None),
        value => {
            let mut members = Members::of(value, "list of push configs")?;
            let items = match members.take(&["configs", "pushNotificationConfigs"]) {
                None => Vec::new(),
                Some(Value::Array(items)) => items,
                Some(_) => {
                    return Err(ReadFault::WrongType { what: "list of push configs", member: "configs" });
                }
            };
            (items, members.text(&["nextPageToken", "next_page_token"])?.filter(|token| !token.is_empty()))
        }
    };
    let mut page = PushPage { next_page_token, ..PushPage::default() };
    for item in items {
        match config(item) {
            Ok(answer) => page.configs.push(answer),
            Err(_) => page.unreadable += 1,
        }
    }
    Ok(page)
}

/// An agent's words without the secrets of the config that was sent to it: refusals quote requests.
pub fn without_secrets(text: &str, config: &PushConfig) -> String {
    let credentials = config.authentication.as_ref().and_then(|inner| inner.credentials.as_ref());
    let mut text = text.to_owned();
    for secret in [config.notification_token.as_ref(), credentials].into_iter().flatten() {
        if !secret.is_empty() {
            text = text.replace(secret.expose(), "REDACTED");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn the_id_is_found_in_every_shape_that_agents_answer() {
        for value in [
            json!({"id":"p","taskId":"t","url":"https://h/x"}),
            json!({"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://h/x"}}),
            json!({"taskId":"t","config":{"id":"p","url":"https://h/x"}}),
            json!({"name":"tasks/t/pushNotificationConfigs/p","pushNotificationConfig":{"url":"https://h/x"}}),
            json!({"configId":"p","config":{"pushNotificationConfig":{"url":"https://h/x"}}}),
        ] {
            let answer = config(value.clone()).unwrap();
            assert_eq!(answer.config_id.as_deref(), Some("p"), "{value}");
            assert_eq!(answer.url.as_deref(), Some("https://h/x"), "{value}");
            assert!(answer.token.is_none() && answer.credentials.is_none());
        }
    }

    #[test]
    fn an_agent_that_says_nothing_is_no_fault() {
        assert!(config(Value::Null).unwrap().config_id.is_none());
        assert!(config(json!({})).unwrap().config_id.is_none());
        assert!(page(Value::Null).unwrap().configs.is_empty());
        assert!(page(json!({})).unwrap().configs.is_empty());
    }

    #[test]
    fn an_echoed_secret_is_found_and_cannot_be_printed() {
        for value in [
            json!({"id":"p","token":"hush-1","authentication":{"scheme":"Bearer","credentials":"hush-2"}}),
            json!({"pushNotificationConfig":{"id":"p","token":"hush-1",
                "authentication":{"schemes":["Bearer"],"credentials":"hush-2"}}}),
        ] {
            let answer = config(value).unwrap();
            assert_eq!(answer.token.as_ref().map(Secret::expose), Some("hush-1"));
            assert_eq!(answer.credentials.as_ref().map(Secret::expose), Some("hush-2"));
            assert!(!format!("{answer:?}").contains("hush"));
        }
    }

    #[test]
    fn a_list_is_read_bare_or_wrapped_and_its_odd_entries_are_counted() {
        let bare = page(json!([{"taskId":"t","pushNotificationConfig":{"id":"a"}}, 7])).unwrap();
        assert_eq!((bare.configs.len(), bare.unreadable), (1, 1));
        let wrapped = page(json!({"configs":[{"id":"a"},{"id":"b"}],"nextPageToken":"n"})).unwrap();
        assert_eq!((wrapped.configs.len(), wrapped.next_page_token.as_deref()), (2, Some("n")));
        assert!(page(json!({"configs":[],"nextPageToken":""})).unwrap().next_page_token.is_none());
        assert!(page(json!({"configs":"x"})).is_err());
    }

    #[test]
    fn a_refusal_that_quotes_the_request_loses_the_secrets() {
        let sent = PushConfig {
            id: None,
            url: "https://h/x".into(),
            notification_token: Some(Secret::new("hush-1")),
            authentication: Some(crate::push_config::PushAuthentication {
                scheme: "bearer".into(),
                credentials: Some(Secret::new("hush-2")),
            }),
            metadata: Map::new(),
        };
        let text = without_secrets(r#"bad params {"token":"hush-1","credentials":"hush-2"}"#, &sent);
        assert_eq!(text, r#"bad params {"token":"REDACTED","credentials":"REDACTED"}"#);
    }
}
