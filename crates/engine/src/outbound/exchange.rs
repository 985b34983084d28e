//! TLS, one request and its final status. What the receiver says beyond that is not read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rustls::pki_types::ServerName;
use taskbell_core::delivery::{Failure, Outcome};
use taskbell_core::retry_after;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use super::Callback;
use super::connect::Stream;

/// Interim answers (1xx) before the final one.
const INTERIM: usize = 16;
const HEADERS: usize = 100;
/// All header fields of an answer together, at most; also what is read ahead of its body.
const HEAD: usize = 64 * 1024;
/// Octets of a body that are read and thrown away, so that a polite receiver sees no reset.
const BODY: usize = 16 * 1024;
const BODY_LASTS: Duration = Duration::from_secs(1);

/// TLS with the host of the URL as the name that is asked for and verified.
pub(super) async fn secure(
    stream: Box<dyn Stream>,
    tls: &Arc<rustls::ClientConfig>,
    name: ServerName<'static>,
    limit: Duration,
) -> Result<Box<dyn Stream>, Failure> {
    let shaking = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    match tokio::time::timeout(limit, shaking).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(tls_failure(&error)),
        Err(_elapsed) => Err(Failure::TlsTimeout),
    }
}

fn tls_failure(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(fault) => Failure::Tls(crate::tls::fault(fault)),
        None => Failure::Closed,
    }
}

/// Posts the callback; the status that ends the exchange.
pub(super) async fn exchange(stream: Box<dyn Stream>, callback: &Callback) -> Result<Outcome, Failure> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_headers(HEADERS)
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failure(&error))?;
    let interim = Arc::new(Interim::default());
    let request = request(callback, &interim)?;
    let talking = async {
        let response = sender.send_request(request).await.map_err(|error| failure(&error))?;
        let outcome = outcome(response.status(), response.headers());
        // The status has decided; whatever goes wrong from here on is of no interest.
        let _ = tokio::time::timeout(BODY_LASTS, discard(Body::new(response.into_body()))).await;
        Ok(outcome)
    };
    tokio::pin!(connection);
    tokio::pin!(talking);
    let mut connected = true;
    loop {
        tokio::select! {
            biased;
            () = interim.too_many.notified() => return Err(Failure::TooManyInterim),
            outcome = &mut talking => {
                // They may all have come in one piece with the final status.
                let too_many = interim.seen.load(Ordering::Relaxed) > INTERIM;
                return if too_many { Err(Failure::TooManyInterim) } else { outcome };
            }
            // It drives the exchange; its end is told to `talking` as well.
            _ = &mut connection, if connected => connected = false,
        }
    }
}

/// Interim answers so far.
#[derive(Default)]
struct Interim {
    seen: AtomicUsize,
    too_many: Notify,
}

fn request(callback: &Callback, interim: &Arc<Interim>) -> Result<Request<Body>, Failure> {
    let url = callback.destination.url();
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .body(Body::from(callback.body.clone()))
        .map_err(|_| Failure::NotHttp)?;
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_str(&authority).map_err(|_| Failure::NotHttp)?);
    headers.insert(
        header::USER_AGENT,
        HeaderValue::from_static(concat!("taskbell/", env!("CARGO_PKG_VERSION"))),
    );
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in &callback.headers {
        headers.insert(name.clone(), value.clone());
    }
    let interim = Arc::clone(interim);
    hyper::ext::on_informational(&mut request, move |_| {
        if interim.seen.fetch_add(1, Ordering::Relaxed) >= INTERIM {
            interim.too_many.notify_one();
        }
    });
    Ok(request)
}

fn outcome(status: StatusCode, headers: &HeaderMap) -> Outcome {
    let retry_after = headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| retry_after::parse(value, Timestamp::now()));
    Outcome::Status { status: status.as_u16(), retry_after }
}

async fn discard(body: Body) {
    let mut chunks = body.into_data_stream();
    let mut left = BODY;
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

fn failure(error: &hyper::Error) -> Failure {
    if error.is_parse() {
        return Failure::NotHttp;
    }
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(fault) = cause.downcast_ref::<io::Error>()
            && let Some(fault) = fault.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            // A server may refuse the handshake after ours is done (TLS 1.3).
            return Failure::Tls(crate::tls::fault(fault));
        }
        source = cause.source();
    }
    Failure::Closed
}
