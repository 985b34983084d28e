//! A proxy in front of an agent that breaks connections on demand.
//!
//! It relays HTTP/1.1 octet by octet and knows only as much of it as it needs
//! to end an answer properly or improperly, and to count what was asked for.
//! Each request gets an upstream connection of its own, so that a fault on one
//! says nothing about another.

mod http;
mod relay;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::ports::free_port;

/// How an answer ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// As if the agent had finished: the last chunk, then FIN.
    CleanEnd,
    /// RST.
    Reset,
    /// Nothing any more in either direction, both sockets open.
    Silence,
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Answered here; the agent never sees it. `"$id"` in the body becomes the id of the request.
    Answer { status: u16, content_type: String, headers: Vec<(String, String)>, body: String },
    /// Answered here with so many times the same octets, declared in full.
    Flood { content_type: String, piece: String, times: usize },
    /// The agent sees and answers it, the client gets a reset.
    SwallowAnswer,
    /// Read, then nothing at all.
    NeverAnswer,
    /// Passed on later.
    Delay(Duration),
    /// This, but later.
    Late(Duration, Box<Fault>),
    /// The body of the answer is cut after so many octets.
    CutAfter(usize, Cut),
    /// One octet of the answer's body at a time.
    Drip(Duration),
}

impl Fault {
    /// The page a reverse proxy shows while the agent behind it is away.
    pub fn bad_gateway() -> Self {
        Self::answer(502, "text/html", "<html><body><h1>502 Bad Gateway</h1></body></html>")
    }

    pub fn answer(status: u16, content_type: &str, body: &str) -> Self {
        let (content_type, body) = (content_type.to_owned(), body.to_owned());
        Self::Answer { status, content_type, headers: Vec::new(), body }
    }

    /// The answer of an agent that wants another token.
    pub fn unauthorized() -> Self {
        let headers = vec![("WWW-Authenticate".to_owned(), "Bearer realm=\"a2a\"".to_owned())];
        Self::Answer {
            status: 401,
            content_type: "application/json".to_owned(),
            headers,
            body: r#"{"error":"unauthorized"}"#.to_owned(),
        }
    }
}

/// Which requests a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// Anything but a card.
    Calls,
    /// Starting a turn, streaming or not.
    Sends,
    /// Reattaching to a task.
    Subscribes,
    /// Reading a task.
    Gets,
    /// Asking to be called back.
    Registers,
    /// The agent card.
    Card,
}

impl When {
    fn holds(self, seen: &Seen) -> bool {
        match self {
            Self::Always => true,
            Self::Calls => !seen.is_card(),
            Self::Sends => seen.is_send(),
            Self::Subscribes => seen.is_subscribe(),
            Self::Gets => seen.is_get(),
            Self::Registers => seen.is_register(),
            Self::Card => seen.is_card(),
        }
    }
}

/// One request that reached the proxy.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at: Instant,
    pub verb: String,
    pub path: String,
    /// The JSON-RPC method, if the body has one.
    pub method: Option<String>,
    pub message_id: Option<String>,
    /// The task asked for.
    pub task: Option<String>,
    pub authorization: Option<String>,
    /// First line and headers as they came.
    pub head: String,
    /// The whole body, if it is JSON.
    pub body: Option<Value>,
}

impl Seen {
    pub fn is_card(&self) -> bool {
        self.verb == "GET" && self.path.contains("/.well-known/")
    }

    pub fn is_send(&self) -> bool {
        let by_method = matches!(
            self.method.as_deref(),
            Some("message/send" | "message/stream" | "SendMessage" | "SendStreamingMessage")
        );
        by_method || self.path.ends_with("message:send") || self.path.ends_with("message:stream")
    }

    pub fn is_subscribe(&self) -> bool {
        matches!(self.method.as_deref(), Some("tasks/resubscribe" | "SubscribeToTask"))
            || self.path.ends_with(":subscribe")
    }

    pub fn is_register(&self) -> bool {
        matches!(
            self.method.as_deref(),
            Some("tasks/pushNotificationConfig/set" | "CreateTaskPushNotificationConfig")
        )
    }

    pub fn is_get(&self) -> bool {
        matches!(self.method.as_deref(), Some("tasks/get" | "GetTask"))
    }
}

struct Rule {
    when: When,
    fault: Fault,
    /// How often it still applies; none for always.
    left: Option<usize>,
}

#[derive(Default)]
struct Record {
    seen: Vec<Seen>,
    rules: Vec<Rule>,
    card: Option<Value>,
    open_streams: usize,
    most_streams: usize,
    refused: usize,
    flooded: usize,
}

/// State that the listener, its connections and the test share.
struct Shared {
    upstream: SocketAddr,
    record: Mutex<Record>,
    /// Counts cuts of live streams; a connection obeys those after its start.
    cuts: watch::Sender<Option<Cut>>,
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics while holding the record")
    }

    /// Notes a request and says what is to become of it.
    fn take_fault(&self, seen: &Seen) -> Option<Fault> {
        let mut record = self.record();
        record.seen.push(seen.clone());
        if seen.is_card()
            && let Some(card) = &record.card
        {
            return Some(Fault::answer(200, "application/json", &card.to_string()));
        }
        let rule = record.rules.iter_mut().find(|rule| rule.left != Some(0) && rule.when.holds(seen))?;
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        Some(rule.fault.clone())
    }
}

/// The proxy; everything it holds open ends with it.
pub struct FaultProxy {
    shared: Arc<Shared>,
    port: u16,
    listening: Option<JoinHandle<()>>,
}

impl FaultProxy {
    /// Listens on a free port in front of the agent on loopback port `upstream`.
    pub async fn before(upstream: u16) -> Self {
        let shared = Arc::new(Shared {
            upstream: SocketAddr::from(([127, 0, 0, 1], upstream)),
            record: Mutex::default(),
            cuts: watch::Sender::new(None),
        });
        let mut proxy = Self { shared, port: free_port(), listening: None };
        let mut tries = 0;
        // Another test program may have taken the port in the meantime.
        while let Err(error) = proxy.listen().await {
            tries += 1;
            assert!(tries < 10, "cannot listen on port {}: {error}", proxy.port);
            proxy.port = free_port();
        }
        proxy
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Applies `fault` to all later requests that `when` names, until [`FaultProxy::heal`].
    pub fn set(&self, when: When, fault: Fault) {
        self.shared.record().rules.push(Rule { when, fault, left: None });
    }

    /// The same for the next `times` of them.
    pub fn set_times(&self, when: When, fault: Fault, times: usize) {
        self.shared.record().rules.push(Rule { when, fault, left: Some(times) });
    }

    /// Forgets all faults for later requests.
    pub fn heal(&self) {
        self.shared.record().rules.clear();
    }

    /// Answers every card request with this card instead of the agent's.
    pub fn serve_card(&self, card: Value) {
        self.shared.record().card = Some(card);
    }

    /// Cuts all event streams that flow now.
    pub fn cut_streams(&self, cut: Cut) {
        self.shared.cuts.send_replace(Some(cut));
    }

    /// Closes the port and every connection, as an agent that is stopped.
    pub async fn down(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            // The only outcome is that it was aborted.
            let _ = listening.await;
        }
    }

    /// Listens on the same port again.
    ///
    /// # Panics
    /// When the port was taken meanwhile.
    pub async fn up(&mut self) {
        assert!(self.listening.is_none(), "it listens already");
        self.listen().await.unwrap_or_else(|error| panic!("cannot listen on port {}: {error}", self.port));
    }

    async fn listen(&mut self) -> std::io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let shared = Arc::clone(&self.shared);
        self.listening = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.spawn(relay::serve(connection, Arc::clone(&shared)));
                while connections.try_join_next().is_some() {}
            }
        }));
        Ok(())
    }

    /// All requests so far, in order of arrival.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.record().seen.clone()
    }

    /// How many requests satisfied `when`.
    pub fn count(&self, when: When) -> usize {
        self.shared.record().seen.iter().filter(|seen| when.holds(seen)).count()
    }

    /// How often each message was sent, by message id.
    pub fn sends(&self) -> HashMap<String, usize> {
        let mut sends = HashMap::new();
        for seen in self.shared.record().seen.iter().filter(|seen| seen.is_send()) {
            let id =
                seen.message_id.clone().unwrap_or_else(|| panic!("a send without a message id: {seen:?}"));
            *sends.entry(id).or_default() += 1;
        }
        sends
    }

    /// Asserts that exactly `messages` messages were sent, each of them once.
    pub fn assert_sent_once_each(&self, messages: usize) {
        let sends = self.sends();
        assert_eq!(sends.len(), messages, "messages that reached the agent: {sends:?}");
        assert!(sends.values().all(|&times| times == 1), "a message was sent twice: {sends:?}");
    }

    /// Event streams that flow now.
    pub fn open_streams(&self) -> usize {
        self.shared.record().open_streams
    }

    /// The most event streams that ever flowed at once.
    pub fn most_streams(&self) -> usize {
        self.shared.record().most_streams
    }

    /// Octets of floods that were taken.
    pub fn flooded(&self) -> usize {
        self.shared.record().flooded
    }

    /// Requests that could not be passed on because the agent did not listen.
    pub fn refused(&self) -> usize {
        self.shared.record().refused
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}
