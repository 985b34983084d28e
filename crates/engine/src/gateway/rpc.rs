//! JSON-RPC: both dialects behind one address, told apart by the method's name. Every frame of an answer is in
//! the vocabulary of the method that was called.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use taskbell_core::dialect::Dialect;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::{self, Operation, contradiction};
use taskbell_core::json::write_line;
use taskbell_core::jsonrpc;

use super::clients::Client;
use super::http::{
    BodyFault, Site, binding, document, last_event, name_activated, not_allowed, read_body, refused, version,
};
use super::operations::Outcome;
use super::stream::{self, Carrier};
use super::traffic::Note;

pub(super) async fn answer(site: Site, client: Arc<Client>, http: Request) -> Response {
    if *http.method() != Method::POST {
        return not_allowed("POST");
    }
    let (head, body) = http.into_parts();
    let body = match read_body(body, &head.headers).await {
        Ok(body) => body,
        Err(BodyFault::TooLarge) => {
            let error = ErrorAnswer::new(ErrorKind::InvalidRequest, "the body is larger than 8 MiB");
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, &Value::Null, Dialect::V1, &error);
        }
        Err(BodyFault::Broken) => {
            return refused(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive whole");
        }
    };
    let octets_in = body.len();
    let rpc = match jsonrpc::Request::read(&body) {
        Ok(rpc) => rpc,
        Err(fault) => {
            let (id, error) = fault.answer();
            return refuse(StatusCode::OK, &id, Dialect::V1, &error);
        }
    };
    drop(body);
    let Some((operation, dialect)) = Operation::from_method(&rpc.method) else {
        // What is said about a method that is unknown is said in the newer dialect.
        let error = ErrorAnswer::new(ErrorKind::MethodNotFound, "method not found");
        return refuse(StatusCode::OK, &rpc.id, Dialect::V1, &error);
    };
    let parts = site.gateway.parts();
    let mut note = Note::begin(
        parts.store().clone(),
        client.key,
        site.agent.key,
        parts.now_ms(),
        (operation, dialect, binding(true)),
        octets_in,
    );
    let mut activated = Vec::new();
    let outcome = async {
        if let Some(named) = version(&head.headers, head.uri.query())?.filter(|named| *named != dialect) {
            return Err(contradiction(named));
        }
        let request = request::params(operation, dialect, rpc.params)?;
        let caller = site.caller(Arc::clone(&client), dialect, &head.headers)?;
        let outcome = caller.run(request, last_event(&head.headers), &mut note).await;
        activated = caller.negotiation.activated();
        outcome
    };
    let outcome = outcome.await;
    let mut response = match outcome {
        Ok(Outcome::Value(value)) => {
            let text = write_line(&jsonrpc::result(&rpc.id, &value));
            note.sent(text.len());
            ([(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Ok(Outcome::Stream(opening)) => {
            stream::response(Carrier::json_rpc(dialect, &rpc.id), *opening, site.ended(&client), note)
        }
        Err(error) => {
            let text = write_line(&jsonrpc::error(&rpc.id, &error.json_rpc(dialect)));
            // The old clients show an error of a stream only where it comes as an event; the new ones, and
            // 1.0 (§9.4.6), want it plain.
            let wants_event =
                dialect == Dialect::V03 && operation.is_streaming() && takes_events(&head.headers);
            let (media_type, text) = if wants_event {
                ("text/event-stream", format!("data: {text}\n\n"))
            } else {
                ("application/json", text)
            };
            note.refused(error.kind, text.len());
            ([(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store")], text).into_response()
        }
    };
    name_activated(&mut response, dialect, &activated);
    response
}

fn takes_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter();
    values.filter_map(|value| value.to_str().ok()).any(|text| text.contains("text/event-stream"))
}

fn refuse(status: StatusCode, id: &Value, dialect: Dialect, error: &ErrorAnswer) -> Response {
    document(status, "application/json", &jsonrpc::error(id, &error.json_rpc(dialect)))
}
