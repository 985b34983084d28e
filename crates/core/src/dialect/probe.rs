//! What an answer to a probe says about the dialect spoken at an address.
//!
//! A probe asks for a task that does not exist, so it changes nothing: the best answer is "not
//! found". Which address and which dialect come next is the caller's list
//! ([`crate::agent::candidates`], [`Interface::dialects_to_try`](crate::agent::Interface::dialects_to_try)).

use serde_json::Value;

use super::Binding;
use crate::fault::{FaultKind, RemoteError};
use crate::json;

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeAnswer<'a> {
    Answered {
        status: u16,
        body: &'a [u8],
    },
    /// No connection, or no answer in time.
    Silent,
}

/// What follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeVerdict {
    /// The dialect asked in is spoken here.
    Confirmed,
    /// Another dialect may be spoken here; after the last, the next candidate.
    NextVersion,
    /// There is nothing at this address; the next candidate may be better.
    NextCandidate,
    /// Nothing is known until a credential is given; the dialect stays as declared.
    AuthNeeded,
    /// Something else answers here: a web page, a redirect, another protocol.
    NotA2a,
    /// No conclusion. Worth one more try.
    Unreachable,
}

pub fn judge_probe(binding: Binding, answer: ProbeAnswer<'_>) -> ProbeVerdict {
    let ProbeAnswer::Answered { status, body } = answer else { return ProbeVerdict::Unreachable };
    if matches!(status, 401 | 403) {
        return ProbeVerdict::AuthNeeded;
    }
    // Redirects are not followed: this one leads to a login page, or to an address nobody gave.
    if (300..400).contains(&status) {
        return ProbeVerdict::NotA2a;
    }
    // A JSON-RPC answer counts whatever the status: version errors come with HTTP 500.
    let document = json::parse(body).ok();
    let by_document = document.as_ref().and_then(|document| judge_document(binding, document, status));
    by_document.unwrap_or(match status {
        200..300 => ProbeVerdict::NotA2a,
        408 | 429 | 500.. => ProbeVerdict::Unreachable,
        // Some servers answer a body they dislike in plain text before they look at the method.
        400 | 415 | 422 => ProbeVerdict::NextVersion,
        _ => ProbeVerdict::NextCandidate,
    })
}

fn judge_document(binding: Binding, document: &Value, status: u16) -> Option<ProbeVerdict> {
    let task = match binding {
        Binding::JsonRpc => document.get("result"),
        Binding::Rest => Some(document),
    };
    if task.is_some_and(is_task) {
        return Some(ProbeVerdict::Confirmed);
    }
    let error = RemoteError::from_body(document, Some(status));
    if error.is_a2a() {
        return Some(judge_error(&error));
    }
    // A google.rpc.Status or problem document that lacks its reason. A web framework's 404 has
    // the same shape but does not speak of a task.
    let message = error.message.to_ascii_lowercase();
    let task_not_found = status == 404 && message.contains("task") && message.contains("not found");
    (binding == Binding::Rest && task_not_found).then_some(ProbeVerdict::Confirmed)
}

fn judge_error(error: &RemoteError) -> ProbeVerdict {
    match error.kind() {
        FaultKind::MethodNotFound
        | FaultKind::InvalidRequest
        | FaultKind::ParseError
        | FaultKind::VersionNotSupported
        | FaultKind::ContentTypeNotSupported => ProbeVerdict::NextVersion,
        FaultKind::Unauthorized | FaultKind::Forbidden => ProbeVerdict::AuthNeeded,
        FaultKind::RateLimited | FaultKind::Unavailable => ProbeVerdict::Unreachable,
        // The method was found and run, or its parameters were read: it exists.
        FaultKind::TaskNotFound
        | FaultKind::TaskTerminal
        | FaultKind::TaskNotCancelable
        | FaultKind::PushNotSupported
        | FaultKind::ExtensionSupportRequired
        | FaultKind::UnsupportedOperation
        | FaultKind::InvalidParams
        | FaultKind::Internal
        | FaultKind::Other => ProbeVerdict::Confirmed,
    }
}

fn is_task(value: &Value) -> bool {
    let task = value.get("task").unwrap_or(value);
    task.get("id").is_some_and(Value::is_string) && task.get("status").is_some_and(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(binding: Binding, status: u16, body: &str, expected: ProbeVerdict) {
        let answer = ProbeAnswer::Answered { status, body: body.as_bytes() };
        assert_eq!(judge_probe(binding, answer), expected, "HTTP {status} {body}");
    }

    fn rpc_error(code: i64, message: &str) -> String {
        serde_json::json!({"jsonrpc": "2.0", "id": "p", "error": {"code": code, "message": message}})
            .to_string()
    }

    #[test]
    fn an_unknown_task_confirms_in_every_form_that_agents_use() {
        let confirmed = ProbeVerdict::Confirmed;
        check(Binding::JsonRpc, 200, &rpc_error(-32001, "Task not found"), confirmed);
        check(Binding::JsonRpc, 200, &rpc_error(-32603, "Task not found: 5f0f"), confirmed);
        check(Binding::JsonRpc, 200, &rpc_error(-32602, "Invalid params"), confirmed);
        check(Binding::JsonRpc, 200, r#"{"result":{"id":"t","status":{"state":"working"}}}"#, confirmed);
        let status = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":
            [{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND"}]}}"#;
        check(Binding::Rest, 404, status, confirmed);
        check(Binding::Rest, 404, r#"{"code":-32001,"message":"x"}"#, confirmed);
        check(Binding::Rest, 404, r#"{"error":{"code":404,"message":"Task not found: 5f0f"}}"#, confirmed);
        check(Binding::Rest, 404, r#"{"type":"urn:x","title":"Task not found","status":404}"#, confirmed);
        check(Binding::Rest, 200, r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#, confirmed);
    }

    #[test]
    fn a_method_or_version_that_is_not_known_leads_to_the_next_version() {
        let next = ProbeVerdict::NextVersion;
        check(Binding::JsonRpc, 200, &rpc_error(-32601, "Method not found: GetTask"), next);
        check(Binding::JsonRpc, 200, &rpc_error(-32600, "Invalid Request"), next);
        check(Binding::JsonRpc, 200, &rpc_error(-32009, "version"), next);
        check(Binding::JsonRpc, 500, &rpc_error(-32009, "version"), next);
        check(Binding::JsonRpc, 200, &rpc_error(-32603, "A2A version '1.0' is not supported by x"), next);
        check(Binding::JsonRpc, 422, "Failed to deserialize", next);
    }

    #[test]
    fn a_missing_page_leads_to_the_next_candidate() {
        let next = ProbeVerdict::NextCandidate;
        check(Binding::Rest, 404, "Not Found", next);
        check(Binding::Rest, 404, r#"{"detail":"Not Found"}"#, next);
        check(Binding::Rest, 404, "<!DOCTYPE html><pre>Cannot GET /tasks/x</pre>", next);
        check(Binding::JsonRpc, 404, r#"{"detail":"Task not found"}"#, next);
        check(Binding::JsonRpc, 405, r#"{"detail":"Method Not Allowed"}"#, next);
    }

    #[test]
    fn a_question_for_credentials_says_nothing_about_the_dialect() {
        check(Binding::JsonRpc, 401, r#"{"error":"unauthorized"}"#, ProbeVerdict::AuthNeeded);
        check(Binding::Rest, 403, "", ProbeVerdict::AuthNeeded);
        check(Binding::JsonRpc, 200, &rpc_error(-31401, "unauthenticated"), ProbeVerdict::AuthNeeded);
    }

    #[test]
    fn pages_redirects_and_other_protocols_are_not_a2a() {
        check(Binding::JsonRpc, 200, "<html>Sign in</html>", ProbeVerdict::NotA2a);
        check(Binding::JsonRpc, 302, "", ProbeVerdict::NotA2a);
        check(Binding::Rest, 307, "", ProbeVerdict::NotA2a);
        check(Binding::Rest, 200, r#"{"ok":true}"#, ProbeVerdict::NotA2a);
        check(Binding::JsonRpc, 200, r#"{"jsonrpc":"2.0","id":"p","result":null}"#, ProbeVerdict::NotA2a);
        check(Binding::JsonRpc, 204, "", ProbeVerdict::NotA2a);
    }

    #[test]
    fn silence_and_gateways_allow_no_conclusion() {
        assert_eq!(judge_probe(Binding::JsonRpc, ProbeAnswer::Silent), ProbeVerdict::Unreachable);
        check(Binding::JsonRpc, 502, "<html>Bad Gateway</html>", ProbeVerdict::Unreachable);
        check(Binding::Rest, 500, "Internal Server Error", ProbeVerdict::Unreachable);
        check(Binding::JsonRpc, 429, "", ProbeVerdict::Unreachable);
    }
}
