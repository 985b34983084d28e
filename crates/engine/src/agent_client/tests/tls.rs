//! Certificates that must not be trusted, and HTTP/2.

use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::agent_client::Outcome;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().der().clone(), key)
    }

    /// A client that trusts this authority alone.
    fn client(&self, url: &str) -> AgentClient {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let http = Http::with_tls(HttpSettings::default(), config, None).unwrap();
        AgentClient::new(http, endpoint(url), Arc::new(FixedCredential(None)))
    }
}

fn server_config(
    (certificate, key): (CertificateDer<'static>, KeyPair),
    alpn: &[&[u8]],
) -> rustls::ServerConfig {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|word| word.to_vec()).collect();
    config
}

async fn tls_server(config: rustls::ServerConfig) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let serving = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut socket) = acceptor.accept(socket).await {
                    let _ = socket.write_all(&super::raw::answer("200 OK", "text/html", b"x")).await;
                }
            });
        }
    });
    (format!("https://localhost:{port}/"), serving)
}

#[tokio::test]
async fn each_certificate_that_is_wrong_has_its_own_code_and_sends_nothing() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let self_signed = {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().der().clone(), key)
    };
    let cases = [
        (
            "tls_expired",
            authority.sign("localhost", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)),
        ),
        (
            "tls_not_yet_valid",
            authority.sign("localhost", |params| {
                params.not_before = rcgen::date_time_ymd(2090, 1, 1);
            }),
        ),
        ("tls_wrong_name", authority.sign("other.example", |_| {})),
        ("tls_unknown_issuer", stranger.sign("localhost", |_| {})),
        ("tls_unknown_issuer", self_signed),
    ];
    for (code, certificate) in cases {
        let (url, serving) = tls_server(server_config(certificate, &[])).await;
        let error = authority.client(&url).send(&hello()).await.unwrap_err();
        assert_eq!((error.code(), error.outcome), (code, Outcome::NotSent), "{error}");
        serving.abort();
    }
}

#[tokio::test]
async fn the_systems_own_trust_refuses_a_self_signed_certificate() {
    let authority = Authority::new();
    let (url, serving) = tls_server(server_config(authority.sign("localhost", |_| {}), &[])).await;
    let error = client(&url).get_task(&task_id()).await.unwrap_err();
    assert_eq!(error.code(), "tls_unknown_issuer");
    serving.abort();
}

#[tokio::test]
async fn a_port_without_tls_is_said_to_have_none() {
    let plain = super::raw::RawAgent::always(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    let url = plain.url.replace("http://127.0.0.1", "https://localhost");
    let error = hasty_client(&url).get_task(&task_id()).await.unwrap_err();
    assert!(["tls_handshake", "agent_timed_out"].contains(&error.code()), "{error:?}");
    assert_eq!(error.outcome, Outcome::NotSent);
}

#[tokio::test]
async fn hundreds_of_streams_over_http_2_are_not_held_up_by_the_peers_limit() {
    let authority = Authority::new();
    let config = server_config(authority.sign("localhost", |_| {}), &[b"h2"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    let serving = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(socket) = acceptor.accept(socket).await else { return };
                let mut connection = h2::server::Builder::new()
                    .max_concurrent_streams(100)
                    .handshake::<_, bytes::Bytes>(socket)
                    .await
                    .unwrap();
                let mut open = Vec::new();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let is_stream = request.headers()["accept"].to_str().unwrap().starts_with("text/event");
                    let kind = if is_stream { "text/event-stream" } else { "text/html" };
                    let head = http::Response::builder().header("content-type", kind).body(()).unwrap();
                    let mut body = respond.send_response(head, !is_stream).unwrap();
                    if is_stream {
                        body.send_data("data: {}\n\n".into(), false).unwrap();
                        open.push(body);
                    }
                }
            });
        }
    });
    let client = authority.client(&url);
    let subscriptions = tokio::time::timeout(Duration::from_secs(20), async {
        let mut subscriptions = Vec::new();
        for _ in 0..200 {
            let mut subscription = client.subscribe(&task_id()).await.unwrap();
            subscription.next().await;
            subscriptions.push(subscription);
        }
        subscriptions
    })
    .await
    .expect("no stream waits for another to end");
    assert_eq!(connections.load(Ordering::Relaxed), 4, "64 streams share a connection");
    assert_eq!(client.get_task(&task_id()).await.unwrap_err().code(), "upstream_not_a2a");
    drop(subscriptions);
    serving.abort();
}

#[tokio::test]
async fn without_trusted_certificates_agents_on_this_machine_are_reached_all_the_same() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let http = Http::with_tls(HttpSettings::default(), config, Some("none found".into())).unwrap();
    assert_eq!(http.trust_problem(), Some("none found"));
    let near = super::raw::RawAgent::with_result(working()).await;
    let none: Arc<dyn CredentialSource> = Arc::new(FixedCredential(None));
    AgentClient::new(http.clone(), endpoint(&near.url), none.clone()).get_task(&task_id()).await.unwrap();
    let authority = Authority::new();
    let (url, serving) = tls_server(server_config(authority.sign("localhost", |_| {}), &[])).await;
    let error = AgentClient::new(http, endpoint(&url), none).get_task(&task_id()).await.unwrap_err();
    assert_eq!(error.code(), "tls_unknown_issuer");
    serving.abort();
}

#[tokio::test]
async fn a_proxy_is_used_only_where_a_setting_names_one_and_never_for_this_machine() {
    let proxy = super::raw::RawAgent::with_result(working()).await;
    let near = super::raw::RawAgent::with_result(working()).await;
    let secret = proxy.url.replace("http://", "http://user:canary-pass@");
    let settings = HttpSettings { proxy: Some(Url::parse(&secret).unwrap()), ..HttpSettings::default() };
    assert!(!format!("{settings:?}").contains("canary"));
    let http = Http::new(settings).unwrap();
    let client = |url: &str| {
        let endpoint = AgentEndpoint { plain_http: PlainHttp::Anywhere, ..endpoint(url) };
        AgentClient::new(http.clone(), endpoint, bearer(url, "canary-token"))
    };
    client(&near.url).get_task(&task_id()).await.unwrap();
    assert_eq!((near.count(), proxy.count()), (1, 0));
    client("http://agent.invalid/a2a").get_task(&task_id()).await.unwrap();
    assert_eq!(proxy.request(0).line, "POST http://agent.invalid/a2a HTTP/1.1");
    assert_eq!(
        proxy.request(0).header("authorization"),
        None,
        "plain http over a network gets no credential"
    );
}
