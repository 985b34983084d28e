//! HTTP+JSON of 1.0. 0.3 is JSON-RPC only: each SDK's bodies of it differ.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{Operation, contradiction};
use taskbell_core::dialect::rest_route::{RouteFault, media_type, route};
use taskbell_core::json::{self, write_line};

use super::clients::Client;
use super::http::{
    BodyFault, Site, binding, document, last_event, name_activated, not_allowed, read_body, refused, version,
};
use super::operations::Outcome;
use super::stream::{self, Carrier};
use super::traffic::Note;

pub(super) async fn answer(site: Site, client: Arc<Client>, below: &str, http: Request) -> Response {
    let asked = asked_type(http.headers());
    let route = match route(http.method().as_str(), below) {
        Ok(route) => route,
        Err(RouteFault::NotFound) => {
            let error = ErrorAnswer::new(ErrorKind::MethodNotFound, "no such path");
            return refuse(asked, &error);
        }
        Err(RouteFault::Verb { allow }) => return not_allowed(allow),
    };
    let operation = route.operation;
    let (head, body) = http.into_parts();
    let body = match read_body(body, &head.headers).await {
        Ok(body) => body,
        Err(BodyFault::TooLarge) => {
            let error = ErrorAnswer::new(ErrorKind::InvalidRequest, "the body is larger than 8 MiB");
            return document(StatusCode::PAYLOAD_TOO_LARGE, asked, &error.rest());
        }
        Err(BodyFault::Broken) => {
            return refused(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive whole");
        }
    };
    let parts = site.gateway.parts();
    let mut note = Note::begin(
        parts.store().clone(),
        client.key,
        site.agent.key,
        parts.now_ms(),
        (operation, Dialect::V1, binding(false)),
        body.len(),
    );
    let mut activated = Vec::new();
    let outcome = async {
        if let Some(named) = version(&head.headers, head.uri.query())?.filter(|named| *named != Dialect::V1) {
            return Err(contradiction(named));
        }
        let body = if route.reads_body() {
            json::parse(&body).map_err(|fault| ErrorAnswer::new(ErrorKind::ParseError, fault.to_string()))?
        } else {
            Value::Null
        };
        let request = route.request(head.uri.query(), body)?;
        let caller = site.caller(Arc::clone(&client), Dialect::V1, &head.headers)?;
        let outcome = caller.run(request, last_event(&head.headers), &mut note).await;
        activated = caller.negotiation.activated();
        outcome
    };
    let outcome = outcome.await;
    let mut response = match outcome {
        Ok(Outcome::Value(value)) => {
            // A deletion has nothing to say, and some clients want a document.
            let value = if operation == Operation::DeletePushConfig { json!({}) } else { value };
            let text = write_line(&value);
            note.sent(text.len());
            ([(header::CONTENT_TYPE, asked)], text).into_response()
        }
        Ok(Outcome::Stream(opening)) => {
            stream::response(Carrier::rest(), *opening, site.ended(&client), note)
        }
        Err(error) => {
            let text = write_line(&error.rest());
            note.refused(error.kind, text.len());
            (status(error.kind), [(header::CONTENT_TYPE, asked)], text).into_response()
        }
    };
    name_activated(&mut response, Dialect::V1, &activated);
    response
}

fn asked_type(headers: &HeaderMap) -> &'static str {
    media_type(headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()))
}

fn refuse(media_type: &'static str, error: &ErrorAnswer) -> Response {
    document(status(error.kind), media_type, &error.rest())
}

fn status(kind: ErrorKind) -> StatusCode {
    StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
