//! What the inbox answers. A refusal is the same octets for everybody whom it is for.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

pub(super) type Body = Full<Bytes>;

/// One of the answers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: StatusCode,
    /// The stable word in the body; none on success.
    code: &'static str,
    message: &'static str,
    /// The connection ends with it.
    closes: bool,
    /// Seconds.
    retry_after: Option<u8>,
}

/// Refuses and ends the connection: who errs so once is not read on.
const fn refused(status: StatusCode, code: &'static str, message: &'static str) -> Answer {
    Answer { status, code, message, closes: true, retry_after: None }
}

impl Answer {
    pub const TAKEN: Self =
        Self { status: StatusCode::OK, code: "", message: "", closes: false, retry_after: None };
    /// An unknown registration, a proof that is missing or wrong: all alike.
    pub const UNPROVEN: Self = Self {
        closes: false,
        ..refused(StatusCode::UNAUTHORIZED, "unauthorized", "the callback does not prove where it comes from")
    };
    pub const GONE: Self = Self {
        closes: false,
        ..refused(StatusCode::GONE, "gone", "this registration was removed; send nothing more here")
    };
    pub const TOO_MANY: Self = Self {
        retry_after: Some(1),
        ..refused(StatusCode::TOO_MANY_REQUESTS, "too_many", "more callbacks than are taken of one task")
    };
    /// Not stored: a retry helps.
    pub const NOT_STORED: Self = Self {
        closes: false,
        retry_after: Some(5),
        ..refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_stored",
            "the callback could not be stored; try again",
        )
    };
    pub const PANICKED: Self =
        refused(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the callback could not be taken");
    pub const AMBIGUOUS: Self = refused(
        StatusCode::BAD_REQUEST,
        "ambiguous",
        "a header that decides comes twice, or contradicts another",
    );
    pub const NOT_OURS: Self =
        refused(StatusCode::BAD_REQUEST, "bad_target", "the target of the request is a path, nothing else");
    pub const NO_HOST: Self = refused(StatusCode::BAD_REQUEST, "no_host", "the request names no host");
    pub const NO_ROUTE: Self =
        refused(StatusCode::NOT_FOUND, "not_found", "nothing but callbacks is taken here");
    pub const NOT_POST: Self =
        refused(StatusCode::METHOD_NOT_ALLOWED, "not_post", "callbacks are sent by POST");
    pub const OTHER_HOST: Self =
        refused(StatusCode::MISDIRECTED_REQUEST, "other_host", "this inbox does not answer for that host");
    pub const BROWSER: Self =
        refused(StatusCode::FORBIDDEN, "browser", "callbacks come from agents, not from browsers");
    pub const HEAD_TOO_LARGE: Self =
        refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", "the headers are too large");
    pub const MEDIA_TYPE: Self = refused(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media_type",
        "a callback is application/json or application/a2a+json in UTF-8, not compressed",
    );
    pub const TOO_LARGE: Self = refused(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        "a callback holds at most 2 MiB; the task is read instead",
    );
    pub const TOO_SLOW: Self =
        refused(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took longer than 5 seconds");
    pub const CUT: Self =
        refused(StatusCode::BAD_REQUEST, "cut", "the body ended early or was framed wrongly");
    pub const NO_CLAIM: Self = refused(
        StatusCode::BAD_REQUEST,
        "unreadable",
        "the body is no callback about a task; the task is read instead",
    );
    pub const OTHER_TASK: Self = refused(
        StatusCode::UNPROCESSABLE_ENTITY,
        "other_task",
        "the callback is not about the registered task",
    );

    /// The same, as the last of its connection where `last`.
    pub fn closing_if(self, last: bool) -> Self {
        Self { closes: self.closes || last, ..self }
    }

    /// Under which it is counted.
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn into_response(self) -> Response<Body> {
        let body = match self.code {
            "" => Bytes::from_static(b"{}"),
            code => Bytes::from(format!(r#"{{"error":{{"code":"{code}","message":"{}"}}}}"#, self.message)),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(u16::from(seconds)));
        }
        match self.status {
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("POST"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => (),
        }
        response
    }
}
