//! JSON-RPC 2.0 envelopes: ours written strictly, theirs read tolerantly.

use serde_json::{Value, json};

use crate::fault::RemoteError;

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

#[cfg(test)]
mod tests {
    use super::*;

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
