//! JSON-RPC at `/`: both dialects behind one address, told apart by the method's name. Every frame of an
//! answer is in the vocabulary of the method that was called.

use hyper::body::Incoming;
use hyper::header::ACCEPT;
use hyper::{Request as HttpRequest, StatusCode};
use serde_json::{Map, Value, json};
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{self, Operation, Request, contradiction};
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{Dialect, v1, v03};
use taskbell_core::jsonrpc;
use taskbell_core::task::{Message, StreamEvent, Task};

use crate::http::{
    Answer, BodyFault, NOT_JSON, Site, content_is_json, error_event, events, json_answer, plain, read_body,
    version,
};
use crate::stream::Carrier;
use crate::world::{Page, Sent, Watch, Watching, terminal};

pub async fn answer(site: &Site, user: usize, http: HttpRequest<Incoming>) -> Answer {
    let named = version(&http);
    let is_json = content_is_json(&http);
    let takes_events = takes_events(&http);
    let extended = site.extensions.check(http.headers());
    let body = match read_body(http.into_body()).await {
        Ok(body) => body,
        Err(BodyFault::TooLarge) => {
            let error = ErrorAnswer::new(ErrorKind::InvalidRequest, "the body is larger than 2 MiB");
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Value::Null, Dialect::V1, &error);
        }
        Err(BodyFault::Broken) => return plain(StatusCode::REQUEST_TIMEOUT, "the body did not arrive"),
    };
    if !is_json {
        let error = ErrorAnswer::new(ErrorKind::ContentTypeNotSupported, NOT_JSON);
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &Value::Null, Dialect::V1, &error);
    }
    let rpc = match jsonrpc::Request::read(&body) {
        Ok(rpc) => rpc,
        Err(fault) => {
            let (id, error) = fault.answer();
            return refuse(StatusCode::OK, &id, Dialect::V1, &error);
        }
    };
    let known = Operation::from_method(&rpc.method);
    // What is said about a method that is unknown is said in the newer dialect.
    let dialect = known.map_or(Dialect::V1, |(_, dialect)| dialect);
    let named = named.and_then(|named| match known {
        Some((Operation::Send | Operation::SendStreaming, _)) => extended.map(|()| named),
        Some(_) | None => Ok(named),
    });
    match outcome(site, user, named, known, rpc.params).await {
        Ok(Outcome::Value(value)) => {
            json_answer(StatusCode::OK, "application/json", &jsonrpc::result(&rpc.id, &value))
        }
        Ok(Outcome::Stream(watch)) => events(site, Carrier::JsonRpc { dialect, id: rpc.id }, watch),
        // The old clients show an error of a stream only where it comes as an event; the new ones, and
        // 1.0 (§9.4.6), want it plain.
        Err(error) if dialect == Dialect::V03 && takes_events && is_streaming(known) => {
            error_event(&jsonrpc::error(&rpc.id, &error.json_rpc(dialect)))
        }
        Err(error) => refuse(StatusCode::OK, &rpc.id, dialect, &error),
    }
}

fn is_streaming(known: Option<(Operation, Dialect)>) -> bool {
    known.is_some_and(|(operation, _)| operation.is_streaming())
}

fn takes_events(http: &HttpRequest<Incoming>) -> bool {
    let values = http.headers().get_all(ACCEPT).iter();
    values.filter_map(|value| value.to_str().ok()).any(|text| text.contains("text/event-stream"))
}

fn refuse(status: StatusCode, id: &Value, dialect: Dialect, error: &ErrorAnswer) -> Answer {
    json_answer(status, "application/json", &jsonrpc::error(id, &error.json_rpc(dialect)))
}

enum Outcome {
    Value(Value),
    Stream(Watch),
}

async fn outcome(
    site: &Site,
    user: usize,
    named: Result<Option<Dialect>, ErrorAnswer>,
    known: Option<(Operation, Dialect)>,
    params: Value,
) -> Result<Outcome, ErrorAnswer> {
    let named = named?;
    let (operation, dialect) =
        known.ok_or_else(|| ErrorAnswer::new(ErrorKind::MethodNotFound, "method not found"))?;
    if let Some(named) = named.filter(|named| *named != dialect) {
        return Err(contradiction(named));
    }
    let request = request::params(operation, dialect, params)?;
    let world = &site.world;
    Ok(Outcome::Value(match request {
        Request::Send(params) => send(site, user, params, dialect).await?,
        Request::SendStreaming(params) => {
            return match world.send(user, params, dialect, Watching::Yes).await? {
                Sent::Task { stream: Some(watch), .. } => Ok(Outcome::Stream(watch)),
                Sent::Task { task, stream: None } => {
                    Ok(Outcome::Value(write_task(&task.lock().task, dialect)))
                }
                // A stream that is one message, then over (1.0 §3.1.2).
                Sent::Message(message) => {
                    let first = Some(StreamEvent::Message(message));
                    Ok(Outcome::Stream(Watch { first, events: None }))
                }
            };
        }
        Request::Subscribe { task_id } => {
            let watch = world.subscribe(user, &task_id)?;
            return match (dialect, &watch) {
                (Dialect::V1, Watch { first: Some(StreamEvent::Task(task)), events: None }) => {
                    Err(terminal(task))
                }
                (Dialect::V1 | Dialect::V03, _) => Ok(Outcome::Stream(watch)),
            };
        }
        Request::Get { task_id, history_length } => {
            let task = world.get(user, &task_id, history_length)?;
            write_task(&task, dialect)
        }
        Request::List(params) => write_page(&world.list(user, &params)?),
        Request::Cancel { task_id } => write_task(&world.cancel(user, &task_id)?, dialect),
        Request::CreatePushConfig(params) => {
            let (task_id, config) = world.create_push_config(user, params, dialect)?;
            match dialect {
                Dialect::V03 => config.v03(&task_id),
                Dialect::V1 => config.v1(&task_id),
            }
        }
        Request::GetPushConfig { task_id, config_id } => {
            let config = world.push_config(user, &task_id, config_id.as_deref())?;
            match dialect {
                Dialect::V03 => config.v03(&task_id),
                Dialect::V1 => config.v1(&task_id),
            }
        }
        Request::ListPushConfigs { task_id, .. } => {
            let configs = world.push_configs(user, &task_id)?;
            match dialect {
                Dialect::V03 => configs.iter().map(|config| config.v03(&task_id)).collect(),
                Dialect::V1 => json!({ "configs":
                    configs.iter().map(|config| config.v1(&task_id)).collect::<Vec<_>>() }),
            }
        }
        Request::DeletePushConfig { task_id, config_id } => {
            world.delete_push_config(user, &task_id, &config_id)?;
            Value::Null
        }
        Request::ExtendedCard => return Err(no_extended_card(dialect)),
    }))
}

/// The card declares none: 1.0 calls the operation unsupported then, 0.3 knows only one code for it.
pub fn no_extended_card(dialect: Dialect) -> ErrorAnswer {
    let kind = match dialect {
        Dialect::V03 => ErrorKind::ExtendedCardNotConfigured,
        Dialect::V1 => ErrorKind::UnsupportedOperation,
    };
    ErrorAnswer::new(kind, "this agent has no extended card")
}

/// The result of a send, after waiting for the task where the client did not say otherwise.
pub async fn send(
    site: &Site,
    user: usize,
    params: request::SendParams,
    dialect: Dialect,
) -> Result<Value, ErrorAnswer> {
    let waits = params.blocking.unwrap_or(true);
    let history_length = params.history_length;
    match site.world.send(user, params, dialect, Watching::No).await? {
        Sent::Message(message) => Ok(write_message(&message, dialect)),
        Sent::Task { task, .. } => {
            let task =
                if waits { task.settled(history_length).await } else { task.lock().view(history_length) };
            let value = write_task(&task, dialect);
            Ok(match dialect {
                Dialect::V03 => value,
                Dialect::V1 => json!({ "task": value }),
            })
        }
    }
}

fn write_message(message: &Message, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V03 => v03::message(message, Extras::Drop),
        Dialect::V1 => json!({ "message": v1::message(message, Extras::Drop) }),
    }
}

fn write_task(task: &Task, dialect: Dialect) -> Value {
    match dialect {
        Dialect::V03 => v03::task(task, Extras::Drop),
        Dialect::V1 => v1::task(task, Extras::Drop),
    }
}

/// All four members stand always: they are required (1.0 §3.1.4).
pub fn write_page(page: &Page) -> Value {
    let tasks: Vec<Value> = page.tasks.iter().map(|task| v1::task(task, Extras::Drop)).collect();
    let mut map = Map::new();
    map.insert("tasks".into(), Value::Array(tasks));
    map.insert("nextPageToken".into(), json!(page.next.as_deref().unwrap_or_default()));
    map.insert("pageSize".into(), json!(page.size));
    map.insert("totalSize".into(), json!(page.total));
    Value::Object(map)
}
