//! A push-notification config: where a client wants to be called back about a task, and with what proof.
//!
//! Read from every shape that clients send (nested 0.3, flat 1.0, the wrappers of SDKs), written without
//! its secrets. Whether a target may be called, and how a callback is delivered, is not decided here.

use serde_json::{Map, Value, json};

use crate::credential::Secret;
use crate::dialect::read::{Members, ReadFault};
use crate::dialect::v1::put_some;
use crate::ids::TaskId;

/// A config as its client registered it.
#[derive(Debug, Clone)]
pub struct PushConfig {
    /// Absent where the server is to name it.
    pub id: Option<String>,
    /// As received, not judged.
    pub url: String,
    /// `token`: sent back in a header of its own with every callback.
    pub notification_token: Option<Secret>,
    pub authentication: Option<PushAuthentication>,
    /// 0.3's `metadata` beside the config.
    pub metadata: Map<String, Value>,
}

/// How a callback proves itself in its `Authorization` header.
#[derive(Debug, Clone)]
pub struct PushAuthentication {
    /// As received: `Bearer`, `bearer`, `Basic`, or something nobody can send.
    pub scheme: String,
    /// Placed verbatim after the scheme, so Basic comes already encoded.
    pub credentials: Option<Secret>,
}

/// A config and the task it is for. The task is absent in the inline configs of a send.
#[derive(Debug, Clone)]
pub struct PushConfigParams {
    pub task_id: Option<TaskId>,
    pub config: PushConfig,
}

/// Reads the params of a create or set, or an inline config: flat, or nested under
/// `pushNotificationConfig` or `config`, or both at once (a 0.3 request that fits every server).
/// The nested form wins member by member.
pub fn params(value: Value) -> Result<PushConfigParams, ReadFault> {
    let mut outer = Members::of(value, "push config")?;
    let task_id = match outer.task_id()? {
        Some(task_id) => Some(task_id),
        None => parent_task(outer.text(&["parent"])?),
    };
    let config_id = outer.text(&["configId", "config_id"])?;
    let metadata = outer.metadata()?;
    let mut nested = outer.take(&["pushNotificationConfig", "push_notification_config", "config"]);
    // The ProtoJSON family of 0.3 nests twice: `config.pushNotificationConfig`.
    if let Some(Value::Object(map)) = &mut nested
        && let Some(inner) = map.remove("pushNotificationConfig").or(map.remove("push_notification_config"))
    {
        nested = Some(inner);
    }
    let flat = fields(&mut outer)?;
    let inner = match nested {
        None => Fields::default(),
        Some(value) => fields(&mut Members::of(value, "push config")?)?,
    };
    let url = inner
        .url
        .or(flat.url)
        .filter(|url| !url.is_empty())
        .ok_or(ReadFault::Missing { what: "push config", member: "url" })?;
    let config = PushConfig {
        id: inner.id.or(flat.id).or(config_id).filter(|id| !id.is_empty()),
        url,
        notification_token: inner.notification_token.or(flat.notification_token),
        authentication: inner.authentication.or(flat.authentication),
        metadata,
    };
    Ok(PushConfigParams { task_id, config })
}

/// `tasks/T` of the 0.3 ProtoJSON form.
fn parent_task(parent: Option<String>) -> Option<TaskId> {
    parent?.strip_prefix("tasks/").filter(|id| !id.is_empty()).map(TaskId::new)
}

#[derive(Default)]
struct Fields {
    id: Option<String>,
    url: Option<String>,
    notification_token: Option<Secret>,
    authentication: Option<PushAuthentication>,
}

fn fields(members: &mut Members) -> Result<Fields, ReadFault> {
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(Fields {
        id: non_empty(members.text(&["id"])?),
        url: non_empty(members.text(&["url"])?),
        notification_token: non_empty(members.text(&["token"])?).map(Secret::new),
        authentication: match members.take(&["authentication"]) {
            None => None,
            Some(value) => authentication(value)?,
        },
    })
}

/// 1.0 names one `scheme`, 0.3 a list of `schemes` of which the first counts.
pub(crate) fn authentication(value: Value) -> Result<Option<PushAuthentication>, ReadFault> {
    let mut members = Members::of(value, "push authentication")?;
    let scheme = match members.text(&["scheme"])? {
        Some(scheme) => Some(scheme),
        None => members.texts(&["schemes"])?.into_iter().next(),
    };
    let credentials = members.text(&["credentials"])?.filter(|text| !text.is_empty()).map(Secret::new);
    // Credentials without a scheme are not passed over: whoever judges refuses the empty one.
    let scheme = scheme.or_else(|| credentials.is_some().then(String::new));
    Ok(scheme.map(|scheme| PushAuthentication { scheme, credentials }))
}

impl PushConfig {
    /// The answer of 1.0: flat, without `token` and `credentials`.
    pub fn v1(&self, task_id: &TaskId) -> Value {
        let mut map = Map::new();
        put_some(&mut map, "id", self.id.as_ref());
        map.insert("taskId".into(), json!(task_id));
        map.insert("url".into(), json!(self.url));
        if let Some(authentication) = &self.authentication {
            map.insert("authentication".into(), json!({ "scheme": authentication.scheme }));
        }
        Value::Object(map)
    }

    /// The answer of 0.3: nested, with `id` and `url` also beside it for clients that expect them flat,
    /// without `token` and `credentials`.
    pub fn v03(&self, task_id: &TaskId) -> Value {
        let mut inner = Map::new();
        put_some(&mut inner, "id", self.id.as_ref());
        inner.insert("url".into(), json!(self.url));
        if let Some(authentication) = &self.authentication {
            inner.insert("authentication".into(), json!({ "schemes": [authentication.scheme] }));
        }
        let mut map = Map::new();
        map.insert("taskId".into(), json!(task_id));
        put_some(&mut map, "id", self.id.as_ref());
        map.insert("url".into(), json!(self.url));
        map.insert("pushNotificationConfig".into(), Value::Object(inner));
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> PushConfigParams {
        params(value).unwrap()
    }

    fn token(config: &PushConfig) -> Option<&str> {
        config.notification_token.as_ref().map(Secret::expose)
    }

    #[test]
    fn every_shape_of_a_registration_is_read_the_same() {
        for value in [
            json!({"taskId":"t","id":"p","url":"https://h/x","token":"tok",
                "authentication":{"scheme":"Bearer","credentials":"sec"}}),
            json!({"taskId":"t","pushNotificationConfig":{"id":"p","url":"https://h/x","token":"tok",
                "authentication":{"schemes":["Bearer"],"credentials":"sec"}}}),
            json!({"taskId":"t","configId":"p","config":{"url":"https://h/x","token":"tok",
                "authentication":{"scheme":"Bearer","credentials":"sec"}}}),
            json!({"parent":"tasks/t","configId":"p","config":{"name":"tasks/t/pushNotificationConfigs/p",
                "pushNotificationConfig":{"url":"https://h/x","token":"tok",
                "authentication":{"schemes":["Bearer"],"credentials":"sec"}}}}),
            json!({"taskId":"t","id":"p","url":"https://h/x","authentication":{"scheme":"Bearer","credentials":"sec"},
                "pushNotificationConfig":{"id":"p","url":"https://h/x","token":"tok"}}),
        ] {
            let read = read(value);
            assert_eq!(read.task_id, Some(TaskId::new("t")));
            assert_eq!(read.config.id.as_deref(), Some("p"));
            assert_eq!(read.config.url, "https://h/x");
            assert_eq!(token(&read.config), Some("tok"));
            let authentication = read.config.authentication.as_ref().unwrap();
            assert_eq!(authentication.scheme, "Bearer");
            assert_eq!(authentication.credentials.as_ref().map(Secret::expose), Some("sec"));
        }
    }

    #[test]
    fn no_answer_and_no_debug_output_holds_a_secret() {
        let read = read(json!({"taskId":"t","id":"p","url":"https://h/x","token":"hush-token",
            "authentication":{"scheme":"Bearer","credentials":"hush-credential"}}));
        let task = TaskId::new("t");
        for text in
            [read.config.v1(&task).to_string(), read.config.v03(&task).to_string(), format!("{read:?}")]
        {
            assert!(!text.contains("hush"), "{text}");
        }
    }

    #[test]
    fn a_config_without_url_is_refused() {
        for value in [json!({"taskId":"t"}), json!({"taskId":"t","url":""}), json!([])] {
            assert!(params(value).is_err());
        }
    }

    #[test]
    fn both_answers_are_read_back_with_their_id() {
        let config = read(json!({"taskId":"t","id":"p","url":"https://h/x"})).config;
        for value in [config.v1(&TaskId::new("t")), config.v03(&TaskId::new("t"))] {
            assert_eq!(read(value).config.id.as_deref(), Some("p"));
        }
    }
}
