//! The four push-config methods, and configs given along with a message.
//!
//! What is registered is kept and called by the dispatcher; here it is only said in the caller's dialect. No
//! answer holds a secret.

use serde_json::{Map, Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::Request;
use taskbell_core::ids::TaskId;
use taskbell_core::push_config::{PushConfig, PushConfigParams};
use taskbell_core::push_rules::Field;

use super::{Caller, faults};
use crate::dispatcher::RegisterError;
use crate::dispatcher::registration::About;
use crate::store::tasks::TaskRow;

/// Whether the card says that push configs are taken.
pub const OFFERED: bool = true;

/// Answers one of the four methods. The task is known to be the caller's; a lost one does not get here.
pub(super) async fn answer(caller: &Caller, task: &TaskRow, request: Request) -> Result<Value, ErrorAnswer> {
    let dispatcher = &caller.gateway.dispatcher;
    match request {
        Request::CreatePushConfig(params) => {
            let registered =
                dispatcher.register(about(caller, task, false), params.config, caller.dialect).await;
            let registered = registered.map_err(|error| refusal(&error, caller.dialect))?;
            Ok(shown(&registered.config, &task.task_id, caller.dialect))
        }
        Request::GetPushConfig { config_id: Some(id), .. } => {
            let found = dispatcher.config(task.key, &id).await.map_err(|error| faults::of_store(&error))?;
            found.map(|config| shown(&config, &task.task_id, caller.dialect)).ok_or_else(unknown_config)
        }
        // 0.3 lets the id away; there the task's first config is meant.
        Request::GetPushConfig { config_id: None, .. } => {
            let all = dispatcher.configs(task.key).await.map_err(|error| faults::of_store(&error))?;
            all.first().map(|config| shown(config, &task.task_id, caller.dialect)).ok_or_else(unknown_config)
        }
        Request::ListPushConfigs { page_size, page_token, .. } => {
            let all = dispatcher.configs(task.key).await.map_err(|error| faults::of_store(&error))?;
            match caller.dialect {
                Dialect::V03 => Ok(all.iter().map(|config| config.v03(&task.task_id)).collect()),
                Dialect::V1 => page(&all, &task.task_id, page_size, page_token.as_deref()),
            }
        }
        Request::DeletePushConfig { config_id, .. } => {
            let deleted = dispatcher.delete_config(task.key, &config_id).await;
            deleted.map_err(|error| faults::of_store(&error))?;
            Ok(match caller.dialect {
                Dialect::V03 => Value::Null,
                Dialect::V1 => Value::Object(Map::new()),
            })
        }
        _ => Err(ErrorAnswer::new(ErrorKind::Internal, "no push config method")),
    }
}

/// Whether a config that comes along with a message would be taken: told before the message leaves.
pub(super) async fn check_inline(caller: &Caller, params: &PushConfigParams) -> Result<(), ErrorAnswer> {
    let (client, name) = (caller.client.key, &caller.client.name);
    let checked = caller.gateway.dispatcher.check(client, name, params.config.clone(), caller.dialect).await;
    checked.map(|_| ()).map_err(|error| refusal(&error, caller.dialect))
}

/// Takes a config that came along with the message that made the task.
pub(super) async fn register_inline(
    caller: &Caller,
    task: &TaskRow,
    params: PushConfigParams,
) -> Result<(), ErrorAnswer> {
    let dispatcher = &caller.gateway.dispatcher;
    let registered = dispatcher.register(about(caller, task, true), params.config, caller.dialect).await;
    registered.map(|_| ()).map_err(|error| refusal(&error, caller.dialect))
}

/// Takes a config that came along with a message for a task that is there already, before the message leaves.
pub(super) async fn register_along(
    caller: &Caller,
    task: &TaskRow,
    params: PushConfigParams,
) -> Result<(), ErrorAnswer> {
    let dispatcher = &caller.gateway.dispatcher;
    let registered = dispatcher.register(about(caller, task, false), params.config, caller.dialect).await;
    registered.map(|_| ()).map_err(|error| refusal(&error, caller.dialect))
}

fn about<'a>(caller: &'a Caller, task: &TaskRow, inline: bool) -> About<'a> {
    About { client: caller.client.key, name: &caller.client.name, task: task.key, inline }
}

fn shown(config: &PushConfig, task_id: &TaskId, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V03 => config.v03(task_id),
        Dialect::V1 => config.v1(task_id),
    }
}

/// A page of 1.0: the token is the place of its first config.
fn page(
    all: &[PushConfig],
    task_id: &TaskId,
    size: Option<u32>,
    token: Option<&str>,
) -> Result<Value, ErrorAnswer> {
    let from = match token {
        None => 0,
        Some(token) => token.parse::<usize>().ok().filter(|from| *from <= all.len()).ok_or_else(|| {
            ErrorAnswer::new(ErrorKind::InvalidParams, "pageToken is none of ours; begin without")
        })?,
    };
    let size = size.map_or(all.len(), |size| size as usize);
    let configs: Vec<Value> = all.iter().skip(from).take(size).map(|config| config.v1(task_id)).collect();
    let next = from.saturating_add(configs.len());
    let mut answer = json!({ "configs": configs });
    if next < all.len() {
        answer["nextPageToken"] = json!(next.to_string());
    }
    Ok(answer)
}

fn unknown_config() -> ErrorAnswer {
    ErrorAnswer::new(ErrorKind::TaskNotFound, "the task has no push config of that id")
}

fn refusal(error: &RegisterError, dialect: Dialect) -> ErrorAnswer {
    let field = |field: Field| field.name(dialect);
    match error {
        RegisterError::Refused(refused) => {
            let name = field(refused.field);
            ErrorAnswer::new(ErrorKind::InvalidParams, format!("{name} is refused: {}", refused.why))
                .with("field", name)
        }
        RegisterError::RefusedByPolicy | RegisterError::NotApproved { .. } => {
            ErrorAnswer::new(ErrorKind::InvalidParams, error.to_string()).with("field", field(Field::Url))
        }
        RegisterError::TooMany => ErrorAnswer::new(ErrorKind::InvalidParams, error.to_string()),
        RegisterError::Keychain(_) => ErrorAnswer::new(ErrorKind::Internal, error.to_string()),
        RegisterError::Store(error) => return faults::of_store(error),
    }
    .with("code", error.code())
}
