//! The operations of A2A, and how each is written in either dialect and binding.
//!
//! Names and parameters: A2A 0.3 `a2a.json`, 1.0 §5.3 and §11.3. Strict: 1.0 parameters hold proto
//! fields only.

use serde_json::{Map, Value, json};

use super::v1::{Extras, put_some};
use super::{Dialect, push_call, v1, v03};
use crate::ids::{ContextId, TaskId};
use crate::push_config::PushConfig;
use crate::state::TaskState;
use crate::task::Message;

/// How many messages of history a read asks for. An explicit positive number, since 0 means all to one
/// SDK and none to another, and leaving it out means none to a third.
pub const HISTORY_LENGTH: u32 = 100;

/// When a send answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// As soon as there is a task: `blocking: false`, `returnImmediately: true`.
    NonBlocking,
    /// Once the task is terminal or waits for somebody.
    Blocking,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SendRequest {
    pub message: Message,
    pub mode: SendMode,
    pub history_length: Option<u32>,
    /// Media types that who asked can show; empty: any.
    pub accepted_output_modes: Vec<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListRequest {
    pub context_id: Option<ContextId>,
    pub status: Option<TaskState>,
    /// 1 to 100.
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
}

#[derive(Debug, Clone)]
pub enum Call {
    Send(SendRequest),
    SendStreaming(SendRequest),
    Get {
        task_id: TaskId,
        history_length: u32,
    },
    /// 1.0 only: 0.3 has no list in JSON-RPC.
    List(ListRequest),
    Cancel {
        task_id: TaskId,
    },
    Subscribe {
        task_id: TaskId,
    },
    /// The same config id again replaces what was registered under it.
    CreatePushConfig {
        task_id: TaskId,
        config: PushConfig,
    },
    GetPushConfig {
        task_id: TaskId,
        config_id: String,
    },
    ListPushConfigs {
        task_id: TaskId,
        /// 1.0 only.
        page_token: Option<String>,
    },
    DeletePushConfig {
        task_id: TaskId,
        config_id: String,
    },
    ExtendedCard,
}

/// The dialect has no such operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("A2A {dialect} has no {operation}")]
pub struct NoSuchOperation {
    pub operation: &'static str,
    pub dialect: Dialect,
}

impl Call {
    /// Whether the answer is an event stream.
    pub fn is_streaming(&self) -> bool {
        matches!(self, Self::SendStreaming(_) | Self::Subscribe { .. })
    }

    /// The operation's 1.0 name, for people and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "SendMessage",
            Self::SendStreaming(_) => "SendStreamingMessage",
            Self::Get { .. } => "GetTask",
            Self::List(_) => "ListTasks",
            Self::Cancel { .. } => "CancelTask",
            Self::Subscribe { .. } => "SubscribeToTask",
            Self::CreatePushConfig { .. } => "CreateTaskPushNotificationConfig",
            Self::GetPushConfig { .. } => "GetTaskPushNotificationConfig",
            Self::ListPushConfigs { .. } => "ListTaskPushNotificationConfigs",
            Self::DeletePushConfig { .. } => "DeleteTaskPushNotificationConfig",
            Self::ExtendedCard => "GetExtendedAgentCard",
        }
    }

    /// The JSON-RPC method and its parameters. `tenant` stands in every 1.0 request where the card
    /// names one (1.0 §8.3.2).
    pub fn json_rpc(
        &self,
        dialect: Dialect,
        tenant: Option<&str>,
    ) -> Result<(&'static str, Value), NoSuchOperation> {
        let (method, mut params) = match dialect {
            Dialect::V03 => self.json_rpc_v03()?,
            Dialect::V1 => (self.name(), self.params_v1()),
        };
        if let (Dialect::V1, Some(tenant)) = (dialect, tenant.filter(|text| !text.is_empty())) {
            params.insert("tenant".into(), json!(tenant));
        }
        Ok((method, Value::Object(params)))
    }

    fn json_rpc_v03(&self) -> Result<(&'static str, Map<String, Value>), NoSuchOperation> {
        let mut params = Map::new();
        let method = match self {
            Self::Send(request) | Self::SendStreaming(request) => {
                params.insert("message".into(), v03::message(&request.message, Extras::Members));
                let mut configuration = Map::new();
                configuration.insert("blocking".into(), json!(request.mode == SendMode::Blocking));
                put_some(&mut configuration, "historyLength", request.history_length.as_ref());
                put_modes(&mut configuration, request);
                params.insert("configuration".into(), Value::Object(configuration));
                v1::put_object(&mut params, "metadata", &request.metadata);
                if self.is_streaming() { "message/stream" } else { "message/send" }
            }
            Self::Get { task_id, history_length } => {
                params.insert("id".into(), json!(task_id));
                params.insert("historyLength".into(), json!(history_length));
                "tasks/get"
            }
            Self::Cancel { task_id } => {
                params.insert("id".into(), json!(task_id));
                "tasks/cancel"
            }
            Self::Subscribe { task_id } => {
                params.insert("id".into(), json!(task_id));
                "tasks/resubscribe"
            }
            Self::CreatePushConfig { task_id, config } => {
                params = push_call::set_v03(task_id, config);
                "tasks/pushNotificationConfig/set"
            }
            // In 0.3 `id` is the task's.
            Self::GetPushConfig { task_id, config_id } => {
                params.insert("id".into(), json!(task_id));
                params.insert("pushNotificationConfigId".into(), json!(config_id));
                "tasks/pushNotificationConfig/get"
            }
            Self::ListPushConfigs { task_id, page_token: _ } => {
                params.insert("id".into(), json!(task_id));
                "tasks/pushNotificationConfig/list"
            }
            Self::DeletePushConfig { task_id, config_id } => {
                params.insert("id".into(), json!(task_id));
                params.insert("pushNotificationConfigId".into(), json!(config_id));
                "tasks/pushNotificationConfig/delete"
            }
            Self::ExtendedCard => "agent/getAuthenticatedExtendedCard",
            Self::List(_) => {
                return Err(NoSuchOperation { operation: self.name(), dialect: Dialect::V03 });
            }
        };
        Ok((method, params))
    }

    fn params_v1(&self) -> Map<String, Value> {
        let mut params = Map::new();
        match self {
            Self::Send(request) | Self::SendStreaming(request) => return send_body_v1(request),
            Self::Get { task_id, history_length } => {
                params.insert("id".into(), json!(task_id));
                params.insert("historyLength".into(), json!(history_length));
            }
            Self::List(request) => {
                put_some(&mut params, "contextId", request.context_id.as_ref());
                put_some(&mut params, "status", request.status.map(TaskState::v1_word).as_ref());
                put_some(&mut params, "pageSize", request.page_size.as_ref());
                put_some(&mut params, "pageToken", request.page_token.as_ref());
            }
            Self::Cancel { task_id } | Self::Subscribe { task_id } => {
                params.insert("id".into(), json!(task_id));
            }
            Self::CreatePushConfig { task_id, config } => return push_call::create_v1(task_id, config),
            Self::GetPushConfig { task_id, config_id } | Self::DeletePushConfig { task_id, config_id } => {
                params.insert("taskId".into(), json!(task_id));
                params.insert("id".into(), json!(config_id));
            }
            Self::ListPushConfigs { task_id, page_token } => {
                params.insert("taskId".into(), json!(task_id));
                put_some(&mut params, "pageToken", page_token.as_ref());
            }
            Self::ExtendedCard => {}
        }
        params
    }

    /// The same call in HTTP+JSON of 1.0.
    pub fn rest(&self) -> RestCall {
        let get = |path: String, query| RestCall { verb: Verb::Get, path, query, body: None };
        let post = |path: String, body| RestCall { verb: Verb::Post, path, query: Vec::new(), body };
        match self {
            Self::Send(request) => post("/message:send".into(), Some(Value::Object(send_body_v1(request)))),
            Self::SendStreaming(request) => {
                post("/message:stream".into(), Some(Value::Object(send_body_v1(request))))
            }
            Self::Get { task_id, history_length } => {
                get(task_path(task_id, ""), vec![("historyLength", history_length.to_string())])
            }
            Self::List(request) => {
                let mut query = Vec::new();
                let mut put = |name, value: Option<String>| {
                    if let Some(value) = value {
                        query.push((name, value));
                    }
                };
                put("contextId", request.context_id.as_ref().map(ToString::to_string));
                put("status", request.status.map(|state| state.v1_word().to_owned()));
                put("pageSize", request.page_size.map(|size| size.to_string()));
                put("pageToken", request.page_token.clone());
                get("/tasks".into(), query)
            }
            Self::Cancel { task_id } => post(task_path(task_id, ":cancel"), Some(json!({}))),
            // Servers take POST, GET or both (A2A #1574): the caller tries POST and remembers.
            Self::Subscribe { task_id } => post(task_path(task_id, ":subscribe"), None),
            Self::CreatePushConfig { task_id, config } => post(
                task_path(task_id, PUSH_CONFIGS),
                Some(Value::Object(push_call::create_v1(task_id, config))),
            ),
            Self::GetPushConfig { task_id, config_id } => {
                get(push_config_path(task_id, config_id), Vec::new())
            }
            Self::ListPushConfigs { task_id, page_token } => {
                let token = page_token.iter().map(|token| ("pageToken", token.clone())).collect();
                get(task_path(task_id, PUSH_CONFIGS), token)
            }
            Self::DeletePushConfig { task_id, config_id } => RestCall {
                verb: Verb::Delete,
                path: push_config_path(task_id, config_id),
                query: Vec::new(),
                body: None,
            },
            Self::ExtendedCard => get("/extendedAgentCard".into(), Vec::new()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Delete,
}

const PUSH_CONFIGS: &str = "/pushNotificationConfigs";

/// A REST request below the interface's URL.
#[derive(Debug, Clone, PartialEq)]
pub struct RestCall {
    pub verb: Verb,
    /// Starts with a slash, ids percent-encoded.
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

fn put_modes(configuration: &mut Map<String, Value>, request: &SendRequest) {
    let modes = request.accepted_output_modes.iter().map(|mode| json!(mode)).collect();
    v1::put_list(configuration, "acceptedOutputModes", modes);
}

fn send_body_v1(request: &SendRequest) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("message".into(), v1::message(&request.message, Extras::Drop));
    let mut configuration = Map::new();
    v1::put_flag(&mut configuration, "returnImmediately", request.mode == SendMode::NonBlocking);
    put_some(&mut configuration, "historyLength", request.history_length.as_ref());
    put_modes(&mut configuration, request);
    v1::put_object(&mut body, "configuration", &configuration);
    v1::put_object(&mut body, "metadata", &request.metadata);
    body
}

/// A task id is opaque and may hold anything, so all but unreserved characters are encoded.
fn task_path(task_id: &TaskId, action: &str) -> String {
    format!("/tasks/{}{action}", path_segment(task_id.as_str()))
}

fn push_config_path(task_id: &TaskId, config_id: &str) -> String {
    format!("{}/{}", task_path(task_id, PUSH_CONFIGS), path_segment(config_id))
}

fn path_segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use crate::task::{Part, Role};

    fn send() -> SendRequest {
        SendRequest {
            message: Message::new(MessageId::new("m-1"), Role::User, vec![Part::text("hi")]),
            mode: SendMode::NonBlocking,
            history_length: None,
            accepted_output_modes: Vec::new(),
            metadata: Map::new(),
        }
    }

    #[test]
    fn a_non_blocking_send_is_written_in_each_dialect() {
        let (method, params) = Call::Send(send()).json_rpc(Dialect::V03, None).unwrap();
        assert_eq!(method, "message/send");
        assert_eq!(
            params,
            json!({"message":{"kind":"message","role":"user","messageId":"m-1","parts":[{"kind":"text","text":"hi"}]},
                "configuration":{"blocking":false}})
        );
        let (method, params) = Call::Send(send()).json_rpc(Dialect::V1, None).unwrap();
        assert_eq!(method, "SendMessage");
        assert_eq!(
            params,
            json!({"message":{"role":"ROLE_USER","messageId":"m-1","parts":[{"text":"hi"}]},
                "configuration":{"returnImmediately":true}})
        );
    }

    #[test]
    fn the_tenant_stands_in_1_0_requests_only() {
        let call = Call::Get { task_id: TaskId::new("t"), history_length: 5 };
        assert_eq!(call.json_rpc(Dialect::V1, Some("acme")).unwrap().1["tenant"], json!("acme"));
        assert_eq!(call.json_rpc(Dialect::V1, Some("")).unwrap().1.get("tenant"), None);
        assert_eq!(call.json_rpc(Dialect::V03, Some("acme")).unwrap().1.get("tenant"), None);
    }

    #[test]
    fn a_task_id_cannot_leave_its_place_in_a_path() {
        let call = Call::Cancel { task_id: TaskId::new("../x?y#z/é") };
        assert_eq!(call.rest().path, "/tasks/..%2Fx%3Fy%23z%2F%C3%A9:cancel");
    }

    #[test]
    fn listing_is_not_in_0_3() {
        assert!(Call::List(ListRequest::default()).json_rpc(Dialect::V03, None).is_err());
    }
}
