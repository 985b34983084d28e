//! Writes errors as a server answers them: the table of codes, reasons and HTTP statuses (A2A 1.0 §5.4,
//! §9.5, §11.6; 0.3 §8), and the bodies of both bindings.
//!
//! What a peer's error means is read in [`crate::fault`]; nothing here decides when to refuse.

use serde_json::{Map, Value, json};

use super::Dialect;

/// Which error. The order is that of the specification's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    ParseError,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    /// 1.0 only.
    ExtensionSupportRequired,
    /// 1.0 only.
    VersionNotSupported,
}

impl ErrorKind {
    pub const ALL: [Self; 14] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
    ];

    /// The JSON-RPC code, the same in both versions.
    pub fn code(self) -> i64 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedCardNotConfigured => -32007,
            Self::ExtensionSupportRequired => -32008,
            Self::VersionNotSupported => -32009,
        }
    }

    /// `reason` of the ErrorInfo. A text that is no JSON has none.
    pub fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::ParseError => return None,
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::InvalidParams => "INVALID_PARAMS",
            Self::Internal => "INTERNAL_ERROR",
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
        })
    }

    /// The HTTP status of the HTTP+JSON binding (1.0.1; 1.0.0 had 409, 415 and 502 for three of them).
    /// JSON-RPC answers 200 whatever the error.
    pub fn http_status(self) -> u16 {
        match self {
            Self::MethodNotFound | Self::TaskNotFound => 404,
            Self::Internal | Self::InvalidAgentResponse => 500,
            Self::ParseError
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::TaskNotCancelable
            | Self::PushNotSupported
            | Self::UnsupportedOperation
            | Self::ContentTypeNotSupported
            | Self::ExtendedCardNotConfigured
            | Self::ExtensionSupportRequired
            | Self::VersionNotSupported => 400,
        }
    }

    /// `status` of the google.rpc.Status body.
    fn rpc_status(self) -> &'static str {
        match self {
            Self::ParseError | Self::InvalidRequest | Self::InvalidParams | Self::ContentTypeNotSupported => {
                "INVALID_ARGUMENT"
            }
            Self::MethodNotFound | Self::TaskNotFound => "NOT_FOUND",
            Self::Internal | Self::InvalidAgentResponse => "INTERNAL",
            Self::TaskNotCancelable | Self::ExtendedCardNotConfigured | Self::ExtensionSupportRequired => {
                "FAILED_PRECONDITION"
            }
            Self::PushNotSupported | Self::UnsupportedOperation | Self::VersionNotSupported => {
                "UNIMPLEMENTED"
            }
        }
    }
}

/// An error to be answered: which, what a person reads, and facts for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorAnswer {
    pub kind: ErrorKind,
    pub message: String,
    /// `metadata` of the ErrorInfo: text to text, as the proto has it.
    pub metadata: Map<String, Value>,
}

impl ErrorAnswer {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), metadata: Map::new() }
    }

    /// The version that was asked for is not spoken here, or not with this method.
    pub fn version(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", "1.0, 0.3")
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(name.to_owned(), Value::String(value.into()));
        self
    }

    fn error_info(&self) -> Option<Value> {
        let reason = self.kind.reason()?;
        Some(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "a2a-protocol.org",
            "metadata": self.metadata,
        }))
    }

    /// The `error` member of a JSON-RPC response. 0.3 names no `data`, so it gets none unless there are
    /// facts in it; 1.0 gets the ErrorInfo always.
    pub fn json_rpc(&self, dialect: Dialect) -> Value {
        let mut error = Map::new();
        error.insert("code".into(), json!(self.kind.code()));
        error.insert("message".into(), json!(self.message));
        match (dialect, self.error_info()) {
            (Dialect::V1, Some(info)) => {
                error.insert("data".into(), json!([info]));
            }
            (Dialect::V03, Some(info)) if !self.metadata.is_empty() => {
                error.insert("data".into(), json!([info]));
            }
            (Dialect::V03 | Dialect::V1, _) => {}
        }
        Value::Object(error)
    }

    /// The body of HTTP+JSON of 1.0: a google.rpc.Status under `error`.
    pub fn rest(&self) -> Value {
        let details: Vec<Value> = self.error_info().into_iter().collect();
        json!({ "error": {
            "code": self.kind.http_status(),
            "status": self.kind.rpc_status(),
            "message": self.message,
            "details": details,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{FaultKind, RemoteError};

    #[test]
    fn what_is_written_is_read_back_as_the_same_fault_in_both_bindings() {
        for (kind, fault) in [
            (ErrorKind::TaskNotFound, FaultKind::TaskNotFound),
            (ErrorKind::TaskNotCancelable, FaultKind::TaskNotCancelable),
            (ErrorKind::PushNotSupported, FaultKind::PushNotSupported),
            (ErrorKind::UnsupportedOperation, FaultKind::UnsupportedOperation),
            (ErrorKind::ExtensionSupportRequired, FaultKind::ExtensionSupportRequired),
            (ErrorKind::VersionNotSupported, FaultKind::VersionNotSupported),
            (ErrorKind::MethodNotFound, FaultKind::MethodNotFound),
            (ErrorKind::InvalidParams, FaultKind::InvalidParams),
            (ErrorKind::InvalidRequest, FaultKind::InvalidRequest),
        ] {
            let answer = ErrorAnswer::new(kind, "text");
            for dialect in [Dialect::V03, Dialect::V1] {
                let read = RemoteError::from_body(&answer.json_rpc(dialect), None);
                assert_eq!(read.kind(), fault, "{kind:?} in {dialect}");
            }
            let read = RemoteError::from_body(&answer.rest(), Some(kind.http_status()));
            assert_eq!(read.kind(), fault, "{kind:?} over HTTP+JSON");
        }
    }

    #[test]
    fn every_kind_has_its_own_code() {
        let mut codes: Vec<i64> = ErrorKind::ALL.map(ErrorKind::code).to_vec();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn a_1_0_error_carries_an_error_info_and_a_0_3_error_only_where_there_are_facts() {
        let plain = ErrorAnswer::new(ErrorKind::TaskNotFound, "task t not found");
        assert_eq!(plain.json_rpc(Dialect::V1)["data"][0]["reason"], json!("TASK_NOT_FOUND"));
        assert_eq!(plain.json_rpc(Dialect::V03).get("data"), None);
        let version = ErrorAnswer::version("A2A version '9' is not supported");
        assert_eq!(
            version.json_rpc(Dialect::V03)["data"][0]["metadata"]["supportedVersions"],
            json!("1.0, 0.3")
        );
    }
}
