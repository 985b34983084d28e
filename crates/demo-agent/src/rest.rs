//! HTTP+JSON of 1.0 below `/rest`. 0.3 is not spoken here: each SDK's bodies differ.

use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap};
use hyper::{Request as HttpRequest, StatusCode};
use serde_json::{Value, json};
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{Operation, Request, contradiction};
use taskbell_core::dialect::rest_route::{RestRoute, RouteFault, media_type, route};
use taskbell_core::dialect::v1::Extras;
use taskbell_core::dialect::{Dialect, v1};
use taskbell_core::json;
use taskbell_core::task::StreamEvent;

use crate::http::{
    Answer, BodyFault, NOT_JSON, Site, content_is_json, events, json_answer, not_allowed, plain, read_body,
    version,
};
use crate::rpc::{no_extended_card, send, write_page};
use crate::stream::Carrier;
use crate::world::{Sent, Watch, Watching, terminal};

pub async fn answer(site: &Site, user: usize, below: &str, http: HttpRequest<Incoming>) -> Answer {
    let route = match route(http.method().as_str(), below) {
        Ok(route) => route,
        Err(RouteFault::NotFound) => return plain(StatusCode::NOT_FOUND, "no such path"),
        Err(RouteFault::Verb { allow }) => return not_allowed(allow),
    };
    let media_type = asked_type(http.headers());
    match version(&http) {
        Ok(None | Some(Dialect::V1)) => {}
        Ok(Some(named)) => return refuse(media_type, &contradiction(named)),
        Err(error) => return refuse(media_type, &error),
    }
    if route.reads_body() && !content_is_json(&http) {
        let error = ErrorAnswer::new(ErrorKind::ContentTypeNotSupported, NOT_JSON);
        return json_answer(StatusCode::UNSUPPORTED_MEDIA_TYPE, media_type, &error.rest());
    }
    if let (Operation::Send | Operation::SendStreaming, Err(error)) =
        (route.operation, site.extensions.check(http.headers()))
    {
        return refuse(media_type, &error);
    }
    let query = http.uri().query().map(str::to_owned);
    let body = if route.reads_body() {
        match read_body(http.into_body()).await {
            Ok(body) => body,
            Err(BodyFault::TooLarge) => {
                let error = ErrorAnswer::new(ErrorKind::InvalidRequest, "the body is larger than 2 MiB");
                return json_answer(StatusCode::PAYLOAD_TOO_LARGE, media_type, &error.rest());
            }
            Err(BodyFault::Broken) => return plain(StatusCode::REQUEST_TIMEOUT, "the body did not arrive"),
        }
    } else {
        Vec::new()
    };
    match outcome(site, user, route, query.as_deref(), &body).await {
        Ok(Outcome::Value(value)) => json_answer(StatusCode::OK, media_type, &value),
        Ok(Outcome::Stream(watch)) => events(site, Carrier::Rest, watch),
        Err(error) => refuse(media_type, &error),
    }
}

fn asked_type(headers: &HeaderMap) -> &'static str {
    media_type(headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()))
}

fn refuse(media_type: &'static str, error: &ErrorAnswer) -> Answer {
    let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_answer(status, media_type, &error.rest())
}

enum Outcome {
    Value(Value),
    Stream(Watch),
}

async fn outcome(
    site: &Site,
    user: usize,
    route: RestRoute,
    query: Option<&str>,
    body: &[u8],
) -> Result<Outcome, ErrorAnswer> {
    if route.operation == Operation::ExtendedCard {
        return Err(no_extended_card(Dialect::V1));
    }
    let body = if route.reads_body() {
        json::parse(body).map_err(|fault| ErrorAnswer::new(ErrorKind::ParseError, fault.to_string()))?
    } else {
        Value::Null
    };
    let world = &site.world;
    Ok(Outcome::Value(match route.request(query, body)? {
        Request::Send(params) => send(site, user, params, Dialect::V1).await?,
        Request::SendStreaming(params) => {
            return match world.send(user, params, Dialect::V1, Watching::Yes).await? {
                Sent::Task { stream: Some(watch), .. } => Ok(Outcome::Stream(watch)),
                Sent::Task { task, stream: None } => {
                    Ok(Outcome::Value(v1::task(&task.lock().task, Extras::Drop)))
                }
                Sent::Message(message) => {
                    let first = Some(StreamEvent::Message(message));
                    Ok(Outcome::Stream(Watch { first, events: None }))
                }
            };
        }
        Request::Subscribe { task_id } => {
            return match world.subscribe(user, &task_id)? {
                Watch { first: Some(StreamEvent::Task(task)), events: None } => Err(terminal(&task)),
                watch => Ok(Outcome::Stream(watch)),
            };
        }
        Request::Get { task_id, history_length } => {
            let task = world.get(user, &task_id, history_length)?;
            v1::task(&task, Extras::Drop)
        }
        Request::List(params) => write_page(&world.list(user, &params)?),
        Request::Cancel { task_id } => v1::task(&world.cancel(user, &task_id)?, Extras::Drop),
        Request::CreatePushConfig(params) => {
            let (task_id, config) = world.create_push_config(user, params, Dialect::V1)?;
            config.v1(&task_id)
        }
        Request::GetPushConfig { task_id, config_id } => {
            world.push_config(user, &task_id, config_id.as_deref())?.v1(&task_id)
        }
        Request::ListPushConfigs { task_id, .. } => {
            let configs = world.push_configs(user, &task_id)?;
            json!({ "configs": configs.iter().map(|config| config.v1(&task_id)).collect::<Vec<_>>() })
        }
        Request::DeletePushConfig { task_id, config_id } => {
            world.delete_push_config(user, &task_id, &config_id)?;
            json!({})
        }
        Request::ExtendedCard => return Err(no_extended_card(Dialect::V1)),
    }))
}
