//! Reads requests as a server gets them: which operation a method names, and its params.
//!
//! Tolerant: snake_case keys, both vocabularies, numeric enums, unknown members, every shape of a push
//! config. The method's name alone decides the dialect of the answer. HTTP+JSON paths are told apart in
//! [`super::rest_route`]; answers are written by [`super::v1`], [`super::v03`] and [`super::errors`].

use serde_json::{Map, Value};

use super::Dialect;
use super::errors::{ErrorAnswer, ErrorKind};
use super::read::{self, Members, ReadFault};
use crate::ids::{ContextId, TaskId};
use crate::push_config::{self, PushConfigParams};
use crate::state::TaskState;
use crate::task::{Message, PartContent, Role};

/// What a client can ask for, whatever the dialect and binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Send,
    SendStreaming,
    Get,
    /// 1.0 only.
    List,
    Cancel,
    Subscribe,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    ExtendedCard,
}

/// Operation, 0.3 method, 1.0 method.
const METHODS: [(Operation, Option<&str>, &str); 11] = [
    (Operation::Send, Some("message/send"), "SendMessage"),
    (Operation::SendStreaming, Some("message/stream"), "SendStreamingMessage"),
    (Operation::Get, Some("tasks/get"), "GetTask"),
    (Operation::List, None, "ListTasks"),
    (Operation::Cancel, Some("tasks/cancel"), "CancelTask"),
    (Operation::Subscribe, Some("tasks/resubscribe"), "SubscribeToTask"),
    (
        Operation::CreatePushConfig,
        Some("tasks/pushNotificationConfig/set"),
        "CreateTaskPushNotificationConfig",
    ),
    (Operation::GetPushConfig, Some("tasks/pushNotificationConfig/get"), "GetTaskPushNotificationConfig"),
    (
        Operation::ListPushConfigs,
        Some("tasks/pushNotificationConfig/list"),
        "ListTaskPushNotificationConfigs",
    ),
    (
        Operation::DeletePushConfig,
        Some("tasks/pushNotificationConfig/delete"),
        "DeleteTaskPushNotificationConfig",
    ),
    (Operation::ExtendedCard, Some("agent/getAuthenticatedExtendedCard"), "GetExtendedAgentCard"),
];

impl Operation {
    /// The operation and the dialect that a JSON-RPC method names.
    pub fn from_method(method: &str) -> Option<(Self, Dialect)> {
        // The .NET SDK's client asks for the list in the singular.
        if method == "ListTaskPushNotificationConfig" {
            return Some((Self::ListPushConfigs, Dialect::V1));
        }
        METHODS.iter().find_map(|(operation, v03, v1)| {
            if *v1 == method {
                Some((*operation, Dialect::V1))
            } else if *v03 == Some(method) {
                Some((*operation, Dialect::V03))
            } else {
                None
            }
        })
    }

    /// The 1.0 method's name, for people and logs.
    pub fn name(self) -> &'static str {
        METHODS.iter().find(|(operation, _, _)| *operation == self).map_or("", |(_, _, name)| name)
    }

    /// Whether the answer is an event stream.
    pub fn is_streaming(self) -> bool {
        matches!(self, Self::SendStreaming | Self::Subscribe)
    }
}

/// What a client says it speaks: the `A2A-Version` header, or else the query (1.0 §3.6.1). `None` where it
/// says nothing; an error where it names a version that is not spoken here.
pub fn named_version(header: Option<&str>, query: Option<&str>) -> Result<Option<Dialect>, ErrorAnswer> {
    let from_query = || {
        let mut pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        pairs.find(|(name, _)| name == "A2A-Version").map(|(_, value)| value.into_owned())
    };
    let named = header.map(|text| text.trim().to_owned()).or_else(from_query);
    match named.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => Dialect::from_version(text).map(Some).ok_or_else(|| {
            let shown: String = text.chars().take(20).collect();
            ErrorAnswer::version(format!("A2A version {shown:?} is not supported"))
        }),
    }
}

/// The version that was named is not the one of the method that was called.
pub fn contradiction(named: Dialect) -> ErrorAnswer {
    ErrorAnswer::version(format!("A2A version '{named}' is not supported by this method"))
}

/// A request with its params read.
#[derive(Debug, Clone)]
pub enum Request {
    Send(SendParams),
    SendStreaming(SendParams),
    Get {
        task_id: TaskId,
        history_length: Option<u32>,
    },
    List(ListParams),
    Cancel {
        task_id: TaskId,
    },
    Subscribe {
        task_id: TaskId,
    },
    CreatePushConfig(PushConfigParams),
    GetPushConfig {
        task_id: TaskId,
        /// 0.3 clients may leave it out: any config of the task is meant.
        config_id: Option<String>,
    },
    ListPushConfigs {
        task_id: TaskId,
        /// 1.0 only.
        page_size: Option<u32>,
        page_token: Option<String>,
    },
    DeletePushConfig {
        task_id: TaskId,
        config_id: String,
    },
    ExtendedCard,
}

#[derive(Debug, Clone)]
pub struct SendParams {
    pub message: Message,
    /// What the client said of blocking; both versions block where it said nothing.
    pub blocking: Option<bool>,
    pub history_length: Option<u32>,
    /// Media types that the client can show; empty: any.
    pub accepted_output_modes: Vec<String>,
    /// A config given along with the message, under any of its names.
    pub push_config: Option<PushConfigParams>,
    pub metadata: Map<String, Value>,
}

/// Of a `ListTasks`. Page size is checked: 1 to 100.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListParams {
    pub context_id: Option<ContextId>,
    pub status: Option<TaskState>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    /// As received: an ISO 8601 instant.
    pub status_timestamp_after: Option<String>,
    pub include_artifacts: bool,
}

/// Why params cannot be read. Answered as -32602.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    #[error(transparent)]
    Read(#[from] ReadFault),
    #[error("{member} must be a whole number from {min} to {max}")]
    Number { member: &'static str, min: u32, max: u32 },
    #[error("status {word:?} is no task state")]
    State { word: String },
    #[error("message has no parts")]
    NoParts,
    #[error("message has no role that is known: user or agent")]
    NoRole,
    #[error("part {number} of the message is neither text nor file nor data")]
    UnknownPart { number: usize },
}

impl From<RequestFault> for ErrorAnswer {
    fn from(fault: RequestFault) -> Self {
        Self::new(ErrorKind::InvalidParams, format!("invalid params: {fault}"))
    }
}

/// Reads the params of a JSON-RPC request, or the body of an HTTP+JSON one.
/// `dialect` only settles what `id` names in the push methods: the task in 0.3, the config in 1.0.
pub fn params(operation: Operation, dialect: Dialect, value: Value) -> Result<Request, RequestFault> {
    if operation == Operation::ExtendedCard {
        return Ok(Request::ExtendedCard);
    }
    if operation == Operation::CreatePushConfig {
        let params = push_config::params(value)?;
        return match params.task_id {
            Some(_) => Ok(Request::CreatePushConfig(params)),
            None => Err(ReadFault::Missing { what: "params", member: "taskId" }.into()),
        };
    }
    // A list needs no params at all.
    let value = match (operation, value) {
        (Operation::List, Value::Null) => Value::Object(Map::new()),
        (_, value) => value,
    };
    let mut members = Members::of(value, "params")?;
    Ok(match operation {
        Operation::Send => Request::Send(send(&mut members)?),
        Operation::SendStreaming => Request::SendStreaming(send(&mut members)?),
        Operation::Get => Request::Get {
            task_id: id(&mut members)?,
            history_length: number(&mut members, HISTORY_LENGTH, 0, u32::MAX)?,
        },
        Operation::List => Request::List(list(&mut members)?),
        Operation::Cancel => Request::Cancel { task_id: id(&mut members)? },
        Operation::Subscribe => Request::Subscribe { task_id: id(&mut members)? },
        Operation::GetPushConfig => {
            let (task_id, config_id) = push_names(&mut members, dialect)?;
            match (dialect, config_id) {
                (Dialect::V1, None) => return Err(ReadFault::Missing { what: "params", member: "id" }.into()),
                (_, config_id) => Request::GetPushConfig { task_id, config_id },
            }
        }
        Operation::ListPushConfigs => {
            let page_size = number(&mut members, &["pageSize", "page_size"], 1, 100)?;
            let page_token = members.text(&["pageToken", "page_token"])?.filter(|token| !token.is_empty());
            Request::ListPushConfigs { task_id: push_names(&mut members, dialect)?.0, page_size, page_token }
        }
        Operation::DeletePushConfig => {
            let (task_id, config_id) = push_names(&mut members, dialect)?;
            let member = match dialect {
                Dialect::V03 => "pushNotificationConfigId",
                Dialect::V1 => "id",
            };
            let config_id = config_id.ok_or(ReadFault::Missing { what: "params", member })?;
            Request::DeletePushConfig { task_id, config_id }
        }
        Operation::CreatePushConfig | Operation::ExtendedCard => Request::ExtendedCard,
    })
}

const HISTORY_LENGTH: &[&str] = &["historyLength", "history_length"];

fn id(members: &mut Members) -> Result<TaskId, ReadFault> {
    Ok(TaskId::new(members.required_text(&["id"])?))
}

/// The task and the config of a push method, by what `id` means in the dialect.
fn push_names(members: &mut Members, dialect: Dialect) -> Result<(TaskId, Option<String>), ReadFault> {
    match dialect {
        Dialect::V03 => {
            let config_id = members.text(&["pushNotificationConfigId", "push_notification_config_id"])?;
            Ok((id(members)?, config_id.filter(|id| !id.is_empty())))
        }
        Dialect::V1 => {
            let task_id =
                members.task_id()?.ok_or(ReadFault::Missing { what: "params", member: "taskId" })?;
            let config_id = members.text(&["id", "configId", "config_id"])?;
            Ok((task_id, config_id.filter(|id| !id.is_empty())))
        }
    }
}

fn send(members: &mut Members) -> Result<SendParams, RequestFault> {
    // The 0.3 compatibility client of the Python SDK names the message `request`.
    let message = members
        .take(&["message", "request"])
        .ok_or(ReadFault::Missing { what: "params", member: "message" })?;
    let odd_kind = part_of_odd_kind(&message);
    let message = read::message(message)?;
    if message.message_id.as_str().is_empty() {
        return Err(ReadFault::Missing { what: "message", member: "messageId" }.into());
    }
    if message.parts.is_empty() {
        return Err(RequestFault::NoParts);
    }
    if message.role == Role::Unspecified {
        return Err(RequestFault::NoRole);
    }
    let unknown = message.parts.iter().position(|part| matches!(part.content, PartContent::Unknown(_)));
    if let Some(place) = odd_kind.or(unknown) {
        return Err(RequestFault::UnknownPart { number: place + 1 });
    }
    let metadata = members.metadata()?;
    let configuration = members.take(&["configuration"]).unwrap_or_else(|| Value::Object(Map::new()));
    let mut configuration = Members::of(configuration, "configuration")?;
    let blocking = configuration.flag(&["blocking"])?;
    let at_once = configuration.flag(&["returnImmediately", "return_immediately"])?;
    let history_length = number(&mut configuration, HISTORY_LENGTH, 0, u32::MAX)?;
    let accepted_output_modes = configuration.texts(&["acceptedOutputModes", "accepted_output_modes"])?;
    let push_config = configuration
        .take(&[
            "taskPushNotificationConfig",
            "task_push_notification_config",
            "pushNotificationConfig",
            "push_notification_config",
            "pushNotification",
            "push_notification",
        ])
        .map(push_config::params)
        .transpose()?;
    Ok(SendParams {
        message,
        blocking: at_once.map(|flag| !flag).or(blocking),
        history_length,
        accepted_output_modes,
        push_config,
        metadata,
    })
}

/// The place of a part that calls itself of a kind no version has. What an agent sends is read whatever
/// it calls itself; what a client asks for must be meant as it is understood.
fn part_of_odd_kind(message: &Value) -> Option<usize> {
    let parts = message.get("parts").or_else(|| message.get("content"))?.as_array()?;
    let is_odd = |name: &Value| !name.as_str().is_some_and(|word| ["text", "file", "data"].contains(&word));
    let names = |part: &Value| ["kind", "type"].map(|name| part.get(name).cloned().unwrap_or_default());
    parts.iter().position(|part| names(part).iter().any(|name| !name.is_null() && is_odd(name)))
}

fn list(members: &mut Members) -> Result<ListParams, RequestFault> {
    let context_id = members.context_id()?;
    let status = match members.take(&["status"]) {
        None => None,
        Some(Value::Number(word)) => match word.as_u64() {
            // 0 is the enum's default: no filter.
            Some(0) => None,
            number => {
                Some(known_state(TaskState::from_number(number.unwrap_or(u64::MAX)), &word.to_string())?)
            }
        },
        Some(Value::String(word)) if word.is_empty() || word == "TASK_STATE_UNSPECIFIED" => None,
        Some(Value::String(word)) => Some(known_state(TaskState::from_word(&word), &word)?),
        Some(_) => return Err(ReadFault::WrongType { what: "params", member: "status" }.into()),
    };
    let page_size = number(members, &["pageSize", "page_size"], 1, 100)?;
    let page_token = members.text(&["pageToken", "page_token"])?.filter(|token| !token.is_empty());
    let history_length = number(members, HISTORY_LENGTH, 0, u32::MAX)?;
    let after = members.text(&["statusTimestampAfter", "status_timestamp_after"])?;
    let include_artifacts = match members.take(&["includeArtifacts", "include_artifacts"]) {
        None => false,
        Some(Value::Bool(flag)) => flag,
        // A query string knows no booleans.
        Some(Value::String(word)) if word == "true" => true,
        Some(Value::String(word)) if word == "false" => false,
        Some(_) => return Err(ReadFault::WrongType { what: "params", member: "includeArtifacts" }.into()),
    };
    Ok(ListParams {
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        status_timestamp_after: after.filter(|text| !text.is_empty()),
        include_artifacts,
    })
}

fn known_state(state: TaskState, word: &str) -> Result<TaskState, RequestFault> {
    match state {
        TaskState::Unknown => Err(RequestFault::State { word: word.chars().take(40).collect() }),
        state => Ok(state),
    }
}

/// A number, or a number written as text as in a query string.
fn number(
    members: &mut Members,
    names: &[&'static str],
    min: u32,
    max: u32,
) -> Result<Option<u32>, RequestFault> {
    let number = match members.take(names) {
        None => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(RequestFault::Number { member: names[0], min, max }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::call::{Call, SendMode, SendRequest};
    use super::*;
    use crate::ids::MessageId;
    use crate::task::Part;

    fn read(method: &str, value: Value) -> Result<Request, RequestFault> {
        let (operation, dialect) = Operation::from_method(method).unwrap();
        params(operation, dialect, value)
    }

    #[test]
    fn what_our_client_writes_is_read_in_both_dialects() {
        let message = Message::new(MessageId::new("m-1"), Role::User, vec![Part::text("hi")]);
        let request = SendRequest {
            message,
            mode: SendMode::NonBlocking,
            history_length: Some(5),
            accepted_output_modes: vec!["text/plain".into()],
            metadata: Map::new(),
        };
        for dialect in [Dialect::V03, Dialect::V1] {
            let (method, value) = Call::Send(request.clone()).json_rpc(dialect, None).unwrap();
            let Ok(Request::Send(send)) = read(method, value) else { panic!("a send in {dialect}") };
            assert_eq!(send.message, request.message);
            assert_eq!((send.blocking, send.history_length), (Some(false), Some(5)));
            assert_eq!(send.accepted_output_modes, request.accepted_output_modes);
            for call in [
                Call::Get { task_id: TaskId::new("t"), history_length: 5 },
                Call::Cancel { task_id: TaskId::new("t") },
                Call::Subscribe { task_id: TaskId::new("t") },
                Call::ExtendedCard,
            ] {
                let (method, value) = call.json_rpc(dialect, None).unwrap();
                assert_eq!(Operation::from_method(method).map(|known| known.1), Some(dialect));
                assert!(read(method, value).is_ok(), "{method}");
            }
        }
    }

    #[test]
    fn blocking_is_said_in_either_vocabulary_or_left_open() {
        for (configuration, expected) in [
            (json!({}), None),
            (json!({"blocking":false}), Some(false)),
            (json!({"blocking":true}), Some(true)),
            (json!({"returnImmediately":true}), Some(false)),
            (json!({"return_immediately":false}), Some(true)),
        ] {
            let value = json!({"message":{"messageId":"m","role":"user","parts":[{"text":"x"}]},
                "configuration":configuration});
            let Ok(Request::Send(send)) = read("message/send", value) else { panic!("a send") };
            assert_eq!(send.blocking, expected);
        }
    }

    #[test]
    fn an_inline_push_config_is_read_under_every_name() {
        for name in ["taskPushNotificationConfig", "pushNotificationConfig", "pushNotification"] {
            let value = json!({"message":{"messageId":"m","role":"user","parts":[{"text":"x"}]},
                "configuration":{name:{"url":"http://127.0.0.1/x"}}});
            let Ok(Request::Send(send)) = read("SendMessage", value) else { panic!("a send") };
            assert_eq!(send.push_config.map(|params| params.config.url), Some("http://127.0.0.1/x".into()));
        }
    }

    #[test]
    fn id_names_the_task_in_0_3_and_the_config_in_1_0() {
        let Ok(Request::DeletePushConfig { task_id, config_id }) =
            read("tasks/pushNotificationConfig/delete", json!({"id":"t","pushNotificationConfigId":"p"}))
        else {
            panic!("a delete")
        };
        assert_eq!((task_id.as_str(), config_id.as_str()), ("t", "p"));
        let Ok(Request::DeletePushConfig { task_id, config_id }) =
            read("DeleteTaskPushNotificationConfig", json!({"taskId":"t","id":"p"}))
        else {
            panic!("a delete")
        };
        assert_eq!((task_id.as_str(), config_id.as_str()), ("t", "p"));
    }

    #[test]
    fn params_that_say_nothing_are_refused() {
        for (method, value) in [
            ("message/send", json!({})),
            ("message/send", json!({"message":{"role":"user","parts":[{"text":"x"}]}})),
            ("message/send", json!({"message":{"messageId":"m","role":"user","parts":[]}})),
            ("GetTask", json!({})),
            ("GetTask", json!({"id":""})),
            ("GetTask", Value::Null),
            ("GetTask", json!([])),
            ("GetTask", json!({"id":"t","historyLength":-1})),
            ("tasks/get", json!({"id":"t","historyLength":"many"})),
            ("CreateTaskPushNotificationConfig", json!({"url":"http://127.0.0.1/x"})),
            ("GetTaskPushNotificationConfig", json!({"taskId":"t"})),
            ("ListTasks", json!({"pageSize":0})),
            ("ListTasks", json!({"pageSize":101})),
            ("ListTasks", json!({"status":"TASK_STATE_DANCING"})),
        ] {
            assert!(read(method, value.clone()).is_err(), "{method} {value}");
        }
    }

    #[test]
    fn a_message_needs_a_role_and_parts_of_a_known_kind() {
        let send = |role: Value, part: Value| {
            let message = json!({"messageId":"m","role":role,"parts":[{"text":"x"}, part]});
            read("message/send", json!({"message":message})).map(|_| ())
        };
        let text = json!({"kind":"text","text":"x"});
        for role in [Value::Null, json!(""), json!("ROLE_UNSPECIFIED"), json!("wizard"), json!(0)] {
            assert_eq!(send(role.clone(), text.clone()), Err(RequestFault::NoRole), "{role}");
        }
        for role in [json!("user"), json!("ROLE_USER"), json!("agent"), json!(1)] {
            assert_eq!(send(role.clone(), text.clone()), Ok(()), "{role}");
        }
        for part in [
            json!({"kind":"hologram","text":"x"}),
            json!({"type":"hologram","text":"x"}),
            json!({"kind":7,"text":"x"}),
            json!({"nothing":"known"}),
            json!("text"),
        ] {
            assert_eq!(
                send(json!("user"), part.clone()),
                Err(RequestFault::UnknownPart { number: 2 }),
                "{part}"
            );
        }
        for part in [
            json!({"type":"text","text":"x"}),
            json!({"url":"https://a.example/x"}),
            json!({"kind":"file","file":{"bytes":"aGk="}}),
            json!({"kind":null,"data":7}),
        ] {
            assert_eq!(send(json!("user"), part.clone()), Ok(()), "{part}");
        }
    }

    #[test]
    fn a_list_is_filtered_by_either_word_and_by_number() {
        for status in [json!("TASK_STATE_WORKING"), json!("working"), json!(2)] {
            let Ok(Request::List(list)) = read("ListTasks", json!({"status":status})) else {
                panic!("a list")
            };
            assert_eq!(list.status, Some(TaskState::Working));
        }
        let Ok(Request::List(list)) = read("ListTasks", Value::Null) else { panic!("a list") };
        assert_eq!(list, ListParams::default());
    }

    #[test]
    fn the_header_names_the_version_and_the_query_only_without_it() {
        for (header, query, expected) in [
            (None, None, Some(None)),
            (Some(""), Some("A2A-Version=1.0"), Some(None)),
            (None, Some("x=1&A2A-Version=1.0"), Some(Some(Dialect::V1))),
            (Some(" 0.3 "), Some("A2A-Version=1.0"), Some(Some(Dialect::V03))),
            (Some("1.0.1"), None, None),
            (Some("2.0"), None, None),
            (None, Some("A2A-Version=9"), None),
        ] {
            assert_eq!(named_version(header, query).ok(), expected, "{header:?} {query:?}");
        }
    }

    #[test]
    fn a_method_of_no_version_is_unknown() {
        for method in ["tasks/list", "getTask", "", "GetTask ", "tasks/send"] {
            assert_eq!(Operation::from_method(method), None, "{method:?}");
        }
    }
}
