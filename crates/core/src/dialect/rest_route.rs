//! Tells the routes of HTTP+JSON of 1.0 apart (§11.3, §5.3) and reads what they ask for.
//!
//! Paths are those below the interface's URL. The `/{tenant}` prefix is not served. A subscribe is taken
//! with either verb, since the text and the proto of the specification disagree (A2A #1574).

use serde_json::{Map, Value};

use super::Dialect;
use super::request::{self, Operation, Request, RequestFault};

/// The type of an answer's document to a client that sent these `Accept` headers.
///
/// `application/a2a+json` where it is asked for. 1.0.1 made it the type of all answers (§11.1); clients and
/// tools of 1.0.0 know `application/json` alone, and whoever knows the newer one says so.
pub fn media_type<'a>(mut accept: impl Iterator<Item = &'a str>) -> &'static str {
    let named = |header: &str| {
        header.split(',').any(|range| {
            let name = range.split(';').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case(A2A_JSON)
        })
    };
    if accept.any(named) { A2A_JSON } else { "application/json" }
}

const A2A_JSON: &str = "application/a2a+json";

/// What a path and a verb name, before the body is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestRoute {
    pub operation: Operation,
    /// What the path says, as members of the params.
    names: Vec<(&'static str, String)>,
    /// Whether the verb carries its params in the query.
    from_query: bool,
}

/// Why a path and a verb name no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RouteFault {
    #[error("no such path")]
    NotFound,
    #[error("this path takes {allow}")]
    Verb { allow: &'static str },
}

/// `path` starts with a slash and is still percent-encoded.
pub fn route(verb: &str, path: &str) -> Result<RestRoute, RouteFault> {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let take = |operation, allow: &'static str, names: Vec<(&'static str, String)>| {
        if allow.split(", ").any(|allowed| allowed == verb) {
            Ok(RestRoute { operation, names, from_query: verb == "GET" })
        } else {
            Err(RouteFault::Verb { allow })
        }
    };
    match segments.as_slice() {
        ["message:send"] => take(Operation::Send, "POST", vec![]),
        ["message:stream"] => take(Operation::SendStreaming, "POST", vec![]),
        ["extendedAgentCard"] => take(Operation::ExtendedCard, "GET", vec![]),
        ["tasks"] => take(Operation::List, "GET", vec![]),
        // An id may hold a colon, encoded or not: only a known action behind the last one counts.
        ["tasks", name] => match name.rsplit_once(':') {
            Some((id, "cancel")) => take(Operation::Cancel, "POST", vec![("id", decode(id)?)]),
            Some((id, "subscribe")) => take(Operation::Subscribe, "POST, GET", vec![("id", decode(id)?)]),
            _ => take(Operation::Get, "GET", vec![("id", decode(name)?)]),
        },
        ["tasks", id, "pushNotificationConfigs"] => {
            let operation =
                if verb == "GET" { Operation::ListPushConfigs } else { Operation::CreatePushConfig };
            take(operation, "POST, GET", vec![("taskId", decode(id)?)])
        }
        ["tasks", id, "pushNotificationConfigs", config] => {
            let operation =
                if verb == "DELETE" { Operation::DeletePushConfig } else { Operation::GetPushConfig };
            take(operation, "GET, DELETE", vec![("taskId", decode(id)?), ("id", decode(config)?)])
        }
        _ => Err(RouteFault::NotFound),
    }
}

impl RestRoute {
    /// Whether a body is expected and read. Cancel and subscribe take an empty one, too.
    pub fn reads_body(&self) -> bool {
        matches!(self.operation, Operation::Send | Operation::SendStreaming | Operation::CreatePushConfig)
    }

    /// Reads the request. `body` is the parsed body where [`RestRoute::reads_body`] says so, else null;
    /// `query` is the raw query string. What the path names wins over the body.
    pub fn request(self, query: Option<&str>, body: Value) -> Result<Request, RequestFault> {
        let mut params = match body {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => return request::params(self.operation, Dialect::V1, other),
        };
        if self.from_query {
            for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
                // The version may stand in the query, too (§3.6.1); it is no param.
                if name != "A2A-Version" {
                    params.insert(name.into_owned(), Value::String(value.into_owned()));
                }
            }
        }
        for (name, value) in self.names {
            params.insert(name.to_owned(), Value::String(value));
        }
        request::params(self.operation, Dialect::V1, Value::Object(params))
    }
}

/// Percent-decodes one segment. What is no UTF-8 names nothing.
fn decode(segment: &str) -> Result<String, RouteFault> {
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        if *byte == b'%' {
            let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
            match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
                _ => return Err(RouteFault::NotFound),
            }
        } else {
            out.push(*byte);
        }
    }
    match String::from_utf8(out) {
        Ok(text) if !text.is_empty() => Ok(text),
        _ => Err(RouteFault::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::call::{Call, ListRequest, Verb};
    use super::*;
    use crate::ids::TaskId;
    use crate::state::TaskState;

    #[test]
    fn an_answer_has_the_newer_type_where_the_client_names_it() {
        let of = |headers: &[&'static str]| media_type(headers.iter().copied());
        assert_eq!(of(&["application/a2a+json, application/json"]), A2A_JSON);
        assert_eq!(of(&["text/html", "Application/A2A+JSON;q=0.5"]), A2A_JSON);
        for headers in [&[][..], &["*/*"], &["application/json"], &["application/*"]] {
            assert_eq!(of(headers), "application/json", "{headers:?}");
        }
    }

    fn verb(verb: Verb) -> &'static str {
        match verb {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        }
    }

    fn query(pairs: &[(&'static str, String)]) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }

    #[test]
    fn a_list_keeps_its_filters_through_the_query() {
        let call = Call::List(ListRequest {
            status: Some(TaskState::Working),
            page_size: Some(7),
            page_token: Some("a b&c".into()),
            ..ListRequest::default()
        })
        .rest();
        let route = route(verb(call.verb), &call.path).unwrap();
        let Ok(Request::List(list)) = route.request(Some(&query(&call.query)), Value::Null) else {
            panic!("a list")
        };
        assert_eq!((list.status, list.page_size), (Some(TaskState::Working), Some(7)));
        assert_eq!(list.page_token.as_deref(), Some("a b&c"));
    }

    #[test]
    fn a_wrong_verb_is_told_from_a_wrong_path() {
        assert_eq!(route("GET", "/message:send"), Err(RouteFault::Verb { allow: "POST" }));
        assert_eq!(route("PUT", "/tasks/t"), Err(RouteFault::Verb { allow: "GET" }));
        for path in ["/", "", "/tasks/", "/tasks/a/b", "/tasks/%zz", "/tasks/%ff", "/v1/tasks/t"] {
            assert_eq!(route("GET", path), Err(RouteFault::NotFound), "{path:?}");
        }
        for verb in ["GET", "POST"] {
            assert_eq!(route(verb, "/tasks/t:subscribe").unwrap().operation, Operation::Subscribe);
        }
    }

    #[test]
    fn the_path_wins_over_the_body() {
        let route = route("POST", "/tasks/t/pushNotificationConfigs").unwrap();
        let body = json!({"taskId":"other","url":"http://127.0.0.1/x"});
        let Ok(Request::CreatePushConfig(params)) = route.request(None, body) else { panic!("a create") };
        assert_eq!(params.task_id, Some(TaskId::new("t")));
    }

    proptest! {
        #[test]
        fn any_task_id_comes_through_a_path(id in ".{1,30}") {
            let call = Call::Cancel { task_id: TaskId::new(id.clone()) }.rest();
            let route = route(verb(call.verb), &call.path).unwrap();
            let Ok(Request::Cancel { task_id }) = route.request(None, Value::Null) else { panic!("a cancel") };
            prop_assert_eq!(task_id.as_str(), id);
        }

        #[test]
        fn no_path_panics(verb in "[A-Z]{0,6}", path in ".{0,60}") {
            let _ = route(&verb, &path);
        }
    }
}
