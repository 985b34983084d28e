//! What a client of the gateway asks is read, or refused with an error of its own version; a route never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use taskbell_core::dialect::request::{Operation, RequestFault, named_version, params};
use taskbell_core::dialect::rest_route::route;
use taskbell_core::dialect::{Dialect, errors::ErrorAnswer};
use taskbell_core::jsonrpc::Request;
use taskbell_core::{json, push_config, relay::EventId};

fn refused(fault: RequestFault) {
    let answer = ErrorAnswer::from(fault);
    for dialect in taskbell_fuzz::DIALECTS {
        let error = answer.json_rpc(dialect);
        assert!(error["code"].as_i64().is_some_and(|code| code < 0));
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    assert!(answer.rest()["error"].is_object());
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).unwrap_or_default()
}

fuzz_target!(|octets: &[u8]| {
    match Request::read(octets) {
        Ok(request) => {
            if let Some((operation, dialect)) = Operation::from_method(&request.method) {
                if let Err(fault) = params(operation, dialect, request.params) {
                    refused(fault);
                }
            }
        }
        Err(fault) => {
            let (id, answer) = fault.answer();
            assert!(matches!(id, Value::Null | Value::String(_) | Value::Number(_)));
            answer.json_rpc(Dialect::V1);
        }
    }
    let mut lines = octets.splitn(4, |octet| *octet == b'\n');
    let mut next = || text(lines.next().unwrap_or_default());
    let (verb, path, query, body) = (next(), next(), next(), next());
    let _ = named_version(Some(verb), Some(path));
    if let Ok(id) = verb.parse::<EventId>() {
        assert_eq!(id.to_string().parse::<EventId>().ok(), Some(id));
    }
    let body = json::parse_str(body).unwrap_or(Value::Null);
    let _ = push_config::params(body.clone());
    if let Ok(route) = route(verb, path) {
        if let Err(fault) = route.request(Some(query), body) {
            refused(fault);
        }
    }
});
