//! The client against receivers that misbehave, with a resolver and a connector that lead to them.

use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use taskbell_core::target::Surroundings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsAcceptor;

use super::*;

mod answers;
mod certificates;
mod rows;

/// Signs certificates, and is the only one whom the client trusts.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().der().clone(), key)
    }

    fn client(&self) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

type Identity = (CertificateDer<'static>, KeyPair);

fn acceptor((certificate, key): Identity) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// What the machine, its resolver and its network are to say.
#[derive(Clone, Default)]
struct World(Arc<WorldInner>);

#[derive(Default)]
struct WorldInner {
    answers: Mutex<VecDeque<Result<Vec<IpAddr>, LookupFault>>>,
    surroundings: Mutex<Surroundings>,
    offline: Mutex<bool>,
    /// Told as the peer instead of the address that was asked for.
    peer: Mutex<Option<IpAddr>>,
    connections: AtomicUsize,
    looked_up: AtomicUsize,
}

impl World {
    fn answer(self, answers: &[&str]) -> Self {
        let answers = answers.iter().map(|text| text.parse().unwrap()).collect();
        self.0.answers.lock().unwrap().push_back(Ok(answers));
        self
    }

    fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }
}

impl Resolve for World {
    /// The answers in turn, the last for ever.
    fn lookup<'a>(&'a self, _name: &'a str, _port: u16) -> BoxFuture<'a, Result<Vec<IpAddr>, LookupFault>> {
        self.0.looked_up.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.0.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        async move { answer.unwrap_or(Err(LookupFault::Failed)) }.boxed()
    }
}

impl Machine for World {
    fn surroundings(&self) -> Surroundings {
        self.0.surroundings.lock().unwrap().clone()
    }

    fn is_online(&self) -> bool {
        !*self.0.offline.lock().unwrap()
    }
}

/// Every connection leads to this receiver, whatever the address.
#[derive(Clone)]
struct LeadsTo<R> {
    world: World,
    receiver: R,
}

impl<R> Connect for LeadsTo<R>
where
    R: Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync,
{
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connected>> {
        self.world.0.connections.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn((self.receiver)(theirs));
        let peer = self.world.0.peer.lock().unwrap().unwrap_or(address.ip());
        async move { Ok(Connected { stream: Box::new(ours), peer }) }.boxed()
    }
}

/// A receiver that takes TLS with this identity, reads the head and body of a request and hands the rest over.
fn over_tls<S, F>(identity: Identity, say: S) -> impl Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync
where
    S: Fn(tokio_rustls::server::TlsStream<DuplexStream>, String) -> F + Send + Sync + Clone + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let acceptor = acceptor(identity);
    move |stream| {
        let (acceptor, say) = (acceptor.clone(), say.clone());
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&request).contains("\r\n\r\n{}") {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => request.extend_from_slice(&buffer[..read]),
                }
            }
            say(stream, String::from_utf8_lossy(&request).into_owned()).await;
        }
        .boxed()
    }
}

/// Says these octets and closes.
fn saying(
    text: impl Into<String>,
) -> impl Fn(tokio_rustls::server::TlsStream<DuplexStream>, String) -> BoxFuture<'static, ()> + Send + Sync + Clone
{
    let text = text.into();
    move |mut stream, _| {
        let text = text.clone();
        async move {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        .boxed()
    }
}

fn callback(url: &str) -> Callback {
    Callback {
        destination: Destination::Public(CallbackTarget::parse(url).unwrap()),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
    }
}

const URL: &str = "https://hooks.example.com/a?b=c";

fn outbound<R>(world: &World, authority: &Authority, receiver: R) -> Outbound
where
    R: Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let connector = LeadsTo { world: world.clone(), receiver };
    Outbound::with(world.clone(), connector, world.clone(), authority.client())
}

/// One attempt at a receiver with a good certificate.
async fn attempt<S, F>(say: S) -> AttemptResult
where
    S: Fn(tokio_rustls::server::TlsStream<DuplexStream>, String) -> F + Send + Sync + Clone + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let authority = Authority::new();
    let world = World::default().answer(&["1.1.1.1"]);
    let receiver = over_tls(authority.sign("hooks.example.com", |_| {}), say);
    outbound(&world, &authority, receiver).send(callback(URL)).await.result
}

fn failed(failure: Failure) -> AttemptResult {
    AttemptResult::Done(Outcome::Failed(failure))
}

fn status(status: u16) -> AttemptResult {
    AttemptResult::Done(Outcome::Status { status, retry_after: None })
}
