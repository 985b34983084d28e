//! What a peer's error means.
//!
//! Decided by reason, then JSON-RPC code, then HTTP status, then text: SDK builds in the field answer
//! every error as -32603, others put a JSON-RPC error behind HTTP 500 or a plain-text 404.

use serde_json::Value;

/// An error as a peer answered it.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteError {
    /// JSON-RPC code, or the `code` of a REST body.
    pub code: Option<i64>,
    /// `reason` of the first ErrorInfo (1.0 §9.5).
    pub reason: Option<String>,
    /// HTTP status, where it was not a success.
    pub http_status: Option<u16>,
    /// As received: clean it before anybody sees it.
    pub message: String,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The agent does not know the task, or does not show it to this identity.
    TaskNotFound,
    /// The task has ended: no message, no subscription.
    TaskTerminal,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    MethodNotFound,
    InvalidParams,
    InvalidRequest,
    ParseError,
    VersionNotSupported,
    ContentTypeNotSupported,
    /// An extension that the agent requires was not asked for.
    ExtensionSupportRequired,
    Unauthorized,
    Forbidden,
    RateLimited,
    /// 5xx without an A2A body: a proxy or an overloaded server.
    Unavailable,
    Internal,
    Other,
}

impl FaultKind {
    /// The request was certainly not executed, so it may be sent again in another form (rule 8 of the
    /// dialect probe). For anything else a send must not be repeated.
    pub fn was_not_executed(self) -> bool {
        matches!(
            self,
            Self::MethodNotFound | Self::InvalidParams | Self::ParseError | Self::VersionNotSupported
        )
    }
}

impl RemoteError {
    /// Reads the `error` member of a JSON-RPC response, or a REST error body in any of the shapes
    /// seen: `{"error":{code,status,message,details}}`, `{code,message}`, `{message}`, `{detail}`,
    /// `{error:"text"}`.
    pub fn from_body(body: &Value, http_status: Option<u16>) -> Self {
        let inner = match body.get("error") {
            Some(inner @ Value::Object(_)) => inner,
            Some(_) | None => body,
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let message = text(inner.get("message"))
            .or_else(|| text(inner.get("detail")))
            .or_else(|| text(inner.get("title")))
            .or_else(|| text(body.get("error")))
            .unwrap_or_default();
        let details = [inner.get("data"), inner.get("details")].into_iter().flatten();
        let reason = details
            .flat_map(|value| match value {
                Value::Array(items) => items.iter().collect::<Vec<_>>(),
                other => vec![other],
            })
            .find_map(|item| text(item.get("reason")));
        Self { code: inner.get("code").and_then(Value::as_i64), reason, http_status, message }
    }

    pub fn kind(&self) -> FaultKind {
        self.kind_by_reason()
            .or_else(|| self.kind_by_code())
            .or_else(|| self.kind_by_status())
            .or_else(|| self.kind_by_text())
            .unwrap_or(FaultKind::Other)
    }

    /// Whether this has the shape of an A2A error, as opposed to some web server's page.
    pub fn is_a2a(&self) -> bool {
        self.kind_by_reason().is_some() || matches!(self.code, Some(code) if code < 0)
    }

    fn kind_by_reason(&self) -> Option<FaultKind> {
        Some(match self.reason.as_deref()? {
            "TASK_NOT_FOUND" => FaultKind::TaskNotFound,
            "TASK_NOT_CANCELABLE" => FaultKind::TaskNotCancelable,
            "PUSH_NOTIFICATION_NOT_SUPPORTED" => FaultKind::PushNotSupported,
            "UNSUPPORTED_OPERATION" => self.terminal_or(FaultKind::UnsupportedOperation),
            "CONTENT_TYPE_NOT_SUPPORTED" => FaultKind::ContentTypeNotSupported,
            "EXTENSION_SUPPORT_REQUIRED" => FaultKind::ExtensionSupportRequired,
            "VERSION_NOT_SUPPORTED" => FaultKind::VersionNotSupported,
            "METHOD_NOT_FOUND" => FaultKind::MethodNotFound,
            "INVALID_PARAMS" => self.terminal_or(FaultKind::InvalidParams),
            "INVALID_REQUEST" => self.terminal_or(FaultKind::InvalidRequest),
            _ => return None,
        })
    }

    fn kind_by_code(&self) -> Option<FaultKind> {
        Some(match self.code? {
            -32001 => FaultKind::TaskNotFound,
            -32002 => FaultKind::TaskNotCancelable,
            -32003 => FaultKind::PushNotSupported,
            -32004 => self.terminal_or(FaultKind::UnsupportedOperation),
            -32005 => FaultKind::ContentTypeNotSupported,
            -32008 => FaultKind::ExtensionSupportRequired,
            -32009 => FaultKind::VersionNotSupported,
            -32700 => FaultKind::ParseError,
            -32600 => self.terminal_or(FaultKind::InvalidRequest),
            -32601 => FaultKind::MethodNotFound,
            -32602 => self.terminal_or(FaultKind::InvalidParams),
            // Some builds answer every error so; their text tells them apart.
            -32603 => self.kind_by_text().unwrap_or(FaultKind::Internal),
            -31401 => FaultKind::Unauthorized,
            -31403 => FaultKind::Forbidden,
            _ => return None,
        })
    }

    fn kind_by_status(&self) -> Option<FaultKind> {
        Some(match self.http_status? {
            401 => FaultKind::Unauthorized,
            403 => FaultKind::Forbidden,
            429 => FaultKind::RateLimited,
            405 => FaultKind::MethodNotFound,
            415 => FaultKind::ContentTypeNotSupported,
            502..=504 => FaultKind::Unavailable,
            _ => return None,
        })
    }

    fn kind_by_text(&self) -> Option<FaultKind> {
        let text = self.message.to_ascii_lowercase();
        if text.contains("version") && text.contains("not supported") {
            Some(FaultKind::VersionNotSupported)
        } else if text.contains("not cancelable") || text.contains("cannot be canceled") {
            Some(FaultKind::TaskNotCancelable)
        } else if text.contains("terminal state") {
            Some(FaultKind::TaskTerminal)
        } else if text.contains("not found") && !text.contains("method") {
            Some(FaultKind::TaskNotFound)
        } else {
            None
        }
    }

    fn terminal_or(&self, otherwise: FaultKind) -> FaultKind {
        if self.message.to_ascii_lowercase().contains("terminal state") {
            FaultKind::TaskTerminal
        } else {
            otherwise
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(body: Value, status: Option<u16>) -> FaultKind {
        RemoteError::from_body(&body, status).kind()
    }

    #[test]
    fn a_refused_subscription_to_a_finished_task_is_known_whatever_the_code() {
        for body in [
            json!({"code":-32602,"message":"Task 8 is in terminal state: completed"}),
            json!({"code":-32004,"message":"Task 4 is in terminal state: TASK_STATE_COMPLETED"}),
            json!({"code":-32603,"message":"Task c is in a terminal state (3) and cannot be subscribed to."}),
        ] {
            assert_eq!(kind(body, None), FaultKind::TaskTerminal);
        }
    }

    #[test]
    fn not_found_is_known_by_code_reason_text_and_rest_body() {
        for (body, status) in [
            (json!({"code":-32001,"message":"x"}), None),
            (json!({"code":-32603,"message":"Task not found: t"}), None),
            (
                json!({"error":{"code":404,"status":"NOT_FOUND","message":"x","details":[{"reason":"TASK_NOT_FOUND"}]}}),
                Some(404),
            ),
        ] {
            assert_eq!(kind(body, status), FaultKind::TaskNotFound);
        }
    }

    #[test]
    fn a_missing_method_is_not_a_missing_task() {
        assert_eq!(
            kind(json!({"code":-32601,"message":"Method not found"}), None),
            FaultKind::MethodNotFound
        );
        assert_eq!(kind(json!({"code":-32603,"message":"method not found"}), None), FaultKind::Internal);
    }

    #[test]
    fn a_web_servers_404_is_not_a_missing_task() {
        let error = RemoteError::from_body(&json!({"detail":"Not Found"}), Some(404));
        assert!(!error.is_a2a());
    }

    #[test]
    fn a_version_refusal_behind_another_code_is_known() {
        let body = json!({"code":-32603,"message":"A2A version '1.0' is not supported"});
        assert_eq!(kind(body, Some(500)), FaultKind::VersionNotSupported);
    }
}
