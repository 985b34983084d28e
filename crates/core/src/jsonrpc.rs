//! JSON-RPC 2.0 envelopes: ours written strictly, theirs read tolerantly.

use serde_json::{Value, json};

use crate::dialect::errors::{ErrorAnswer, ErrorKind};
use crate::fault::RemoteError;
use crate::json::{self, JsonFault};

/// Our requests carry numbers, so that a peer's string ids are never taken for ours.
pub fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A response as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Null or absent where the peer could not read the request.
    pub id: Option<Value>,
    pub outcome: Result<Value, RemoteError>,
}

/// The document is no JSON-RPC response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON-RPC response")]
pub struct NotAResponse;

impl Response {
    /// A response with neither `result` nor `error` has the result null: Python's push delete and Go's
    /// empty results come so. `jsonrpc` may be missing.
    pub fn read(value: Value, http_status: Option<u16>) -> Result<Self, NotAResponse> {
        let Value::Object(mut map) = value else { return Err(NotAResponse) };
        let id = map.remove("id").filter(|id| !id.is_null());
        match (map.remove("error"), map.remove("result")) {
            (Some(error @ Value::Object(_)), _) => {
                Ok(Self { id, outcome: Err(RemoteError::from_body(&error, http_status)) })
            }
            (_, Some(result)) => Ok(Self { id, outcome: Ok(result) }),
            (_, None) if id.is_some() && map.get("jsonrpc").is_some() => {
                Ok(Self { id, outcome: Ok(Value::Null) })
            }
            (_, None) => Err(NotAResponse),
        }
    }

    /// Whether this answers our request. A missing id is let pass on an error only: the peer could not
    /// read what we sent.
    pub fn answers(&self, id: u64) -> bool {
        match &self.id {
            Some(Value::Number(number)) => number.as_u64() == Some(id),
            Some(Value::String(text)) => text.parse() == Ok(id),
            Some(_) => false,
            None => self.outcome.is_err(),
        }
    }
}

/// A request as a server reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// A string or a whole number, echoed as it came; null where it was absent.
    pub id: Value,
    pub method: String,
    /// Null where absent.
    pub params: Value,
}

/// Why a document is no request. The answer's id is null, except where the id could still be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RequestFault {
    #[error(transparent)]
    NotJson(#[from] JsonFault),
    #[error("batches are not taken")]
    Batch,
    #[error("a request is an object with jsonrpc \"2.0\", a method and an id that is text or a whole number")]
    Invalid { id: Value },
}

impl RequestFault {
    /// What is answered, and under which id.
    pub fn answer(&self) -> (Value, ErrorAnswer) {
        match self {
            Self::NotJson(_) => (Value::Null, ErrorAnswer::new(ErrorKind::ParseError, self.to_string())),
            Self::Batch => (Value::Null, ErrorAnswer::new(ErrorKind::InvalidRequest, self.to_string())),
            Self::Invalid { id } => {
                (id.clone(), ErrorAnswer::new(ErrorKind::InvalidRequest, self.to_string()))
            }
        }
    }
}

impl Request {
    pub fn read(bytes: &[u8]) -> Result<Self, RequestFault> {
        let mut map = match json::parse(bytes)? {
            Value::Object(map) => map,
            Value::Array(_) => return Err(RequestFault::Batch),
            _ => return Err(RequestFault::Invalid { id: Value::Null }),
        };
        // Nothing else can be echoed so that every client matches it.
        let id = match map.remove("id") {
            None => Value::Null,
            Some(Value::Number(number)) if !number.is_f64() => Value::Number(number),
            Some(id @ Value::String(_)) => id,
            Some(_) => return Err(RequestFault::Invalid { id: Value::Null }),
        };
        let is_v2 = map.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
        match (is_v2, map.remove("method")) {
            (true, Some(Value::String(method))) => {
                Ok(Self { id, method, params: map.remove("params").unwrap_or_default() })
            }
            _ => Err(RequestFault::Invalid { id }),
        }
    }
}

/// A server's answer.
pub fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// A server's refusal; `error` as [`ErrorAnswer::json_rpc`] writes it.
pub fn error(id: &Value, error: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_with_its_id_as_it_came() {
        for id in [json!(7), json!("seven"), json!(-1), json!(u64::MAX)] {
            let request = request_with(&id);
            assert_eq!(Request::read(request.to_string().as_bytes()).unwrap().id, id);
        }
        let absent = Request::read(br#"{"jsonrpc":"2.0","method":"m"}"#).unwrap();
        assert_eq!((absent.id, absent.params), (Value::Null, Value::Null));
    }

    #[test]
    fn an_id_that_cannot_be_echoed_is_refused_under_null() {
        for id in [Value::Null, json!(1.5), json!(true), json!([]), json!({"a":1})] {
            let fault = Request::read(request_with(&id).to_string().as_bytes()).unwrap_err();
            let (answered, answer) = fault.answer();
            assert_eq!((answered, answer.kind), (Value::Null, ErrorKind::InvalidRequest), "{id}");
        }
    }

    #[test]
    fn faults_of_an_envelope_have_their_codes() {
        for (text, kind, id) in [
            ("{", ErrorKind::ParseError, Value::Null),
            ("[]", ErrorKind::InvalidRequest, Value::Null),
            ("7", ErrorKind::InvalidRequest, Value::Null),
            (r#"{"id":1,"method":"m"}"#, ErrorKind::InvalidRequest, json!(1)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, ErrorKind::InvalidRequest, json!(1)),
            (r#"{"jsonrpc":"2.0","id":"x","method":5}"#, ErrorKind::InvalidRequest, json!("x")),
        ] {
            let (answered, answer) = Request::read(text.as_bytes()).unwrap_err().answer();
            assert_eq!((answer.kind, answered), (kind, id), "{text}");
        }
    }

    fn request_with(id: &Value) -> Value {
        json!({"jsonrpc":"2.0","id":id,"method":"m","params":{}})
    }

    #[test]
    fn neither_result_nor_error_is_null() {
        let response = Response::read(json!({"id":7,"jsonrpc":"2.0"}), None).unwrap();
        assert_eq!(response.outcome, Ok(Value::Null));
        assert!(response.answers(7) && !response.answers(8));
    }

    #[test]
    fn an_error_without_id_answers_us_and_a_result_without_id_does_not() {
        let error =
            Response::read(json!({"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}), None).unwrap();
        assert!(error.answers(1));
        let result = Response::read(json!({"jsonrpc":"2.0","result":{}}), None).unwrap();
        assert!(!result.answers(1));
    }

    #[test]
    fn other_documents_are_no_responses() {
        for value in [json!([]), json!("x"), json!({"detail":"Not Found"}), json!({"error":"unauthorized"})] {
            assert_eq!(Response::read(value, None), Err(NotAResponse));
        }
    }
}
