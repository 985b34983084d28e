//! Finds an agent from what the user typed: its card, the interface to call, the dialect spoken there.
//!
//! Only reads: card files, and one question about a task that does not exist. What the answers mean
//! and which address comes next is decided in [`taskbell_core::agent`] and
//! [`taskbell_core::dialect::probe`]. Nothing is stored, and nothing that a card names is fetched but
//! the interface itself, on the origin that the rules allow.

use std::sync::Arc;

use reqwest::header::{self, HeaderMap};
use reqwest::{Method, StatusCode};
use taskbell_core::agent::{
    AgentCard, CardOrigin, Choice, Interface, PlainHttp, base_of, candidates, card_urls, choose, without_card,
};
use taskbell_core::dialect::call::Call;
use taskbell_core::dialect::probe::{ProbeAnswer, ProbeVerdict, judge_probe};
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::ids::{AgentName, TaskId};
use taskbell_core::json;
use url::{Origin, Url};

use super::fault::{CallError, CallFault, Failure, Unreachable};
use super::http::{Http, Request, not_a2a, read_body};
use super::token::CredentialSource;
use super::{ACCEPT_JSON, AgentEndpoint, Caller, Quirks, timed_out, wire_request};

const FETCH_CARD: &str = "FetchCard";
const PROBE: &str = "Probe";

/// What the user decided beforehand.
#[derive(Debug, Clone)]
pub struct DiscoveryOptions {
    pub plain_http: PlainHttp,
    pub card_origin: CardOrigin,
    /// Only this binding and dialect, at the registered address or where the card puts that binding.
    pub only: Option<(Binding, Dialect)>,
}

/// An agent as found.
#[derive(Debug, Clone)]
pub struct Discovery {
    pub card: Option<FoundCard>,
    pub endpoint: AgentEndpoint,
    pub confidence: Confidence,
    /// The interface's address as the card wrote it.
    pub declared_url: Url,
    /// The card's origin where it is not the registered one: to be shown, and used on consent only.
    pub foreign_origin: Option<Origin>,
    /// The other interfaces that could be called, in order.
    pub others: Vec<Interface>,
}

/// How it is known which dialect is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// A question was answered in it.
    Confirmed,
    /// The card says so, or nobody does; the agent wants a credential first.
    Declared,
}

#[derive(Debug, Clone)]
pub struct FoundCard {
    pub card: AgentCard,
    pub url: Url,
    pub etag: Option<String>,
}

/// Looks at `url`: a base address, a card's address, or an interface without any card.
///
/// The credential goes to its own origin only, as everywhere.
///
/// # Errors
/// `unauthorized` or `forbidden` where even the card wants another credential; else the most telling
/// of what the addresses answered.
pub async fn discover(
    http: &Http,
    agent: &AgentName,
    url: &Url,
    credentials: Arc<dyn CredentialSource>,
    options: &DiscoveryOptions,
) -> Result<Discovery, CallError> {
    let caller = Caller::new(http.clone(), credentials, options.plain_http);
    let card = find_card(&caller, url).await.map_err(|failure| failure.of(agent, FETCH_CARD))?;
    let base = base_of(url);
    let mut interfaces = match &card {
        Some(found) => candidates(&found.card, &base),
        None => without_card(&base),
    };
    if let Some((binding, _)) = options.only {
        interfaces.retain(|interface| interface.binding == binding);
        if interfaces.is_empty() {
            interfaces = without_card(&base).into_iter().map(|bare| Interface { binding, ..bare }).collect();
        }
    }
    let search = Search { caller: &caller, agent, base: &base, options };
    let (endpoint, confidence, index, choice) =
        search.run(&interfaces).await.map_err(|failure| failure.of(agent, PROBE))?;
    interfaces.remove(index);
    Ok(Discovery {
        card,
        endpoint,
        confidence,
        declared_url: choice.declared_url,
        foreign_origin: choice.foreign_origin,
        others: interfaces,
    })
}

/// Reads one card again, from where it was found. `None` where it has not changed.
pub async fn refresh_card(
    http: &Http,
    agent: &AgentName,
    found: &FoundCard,
    credentials: Arc<dyn CredentialSource>,
    plain_http: PlainHttp,
) -> Result<Option<FoundCard>, CallError> {
    let caller = Caller::new(http.clone(), credentials, plain_http);
    let fetched = fetch_card(&caller, &found.url).await.map_err(|failure| failure.of(agent, FETCH_CARD))?;
    Ok((fetched.card.raw != found.card.raw).then_some(fetched))
}

/// The first card among the places where one may be. No card is no error.
async fn find_card(caller: &Caller, url: &Url) -> Result<Option<FoundCard>, Failure> {
    for place in card_urls(url) {
        match fetch_card(caller, &place).await {
            Ok(found) => return Ok(Some(found)),
            Err(failure) => match &failure.fault {
                // Nothing there, or something else: the next place may be better.
                CallFault::NotA2a { .. }
                | CallFault::Redirect { .. }
                | CallFault::BadJson(_)
                | CallFault::Encoded { .. }
                | CallFault::TooLarge { .. } => {}
                // The same for every other place.
                _ => return Err(failure),
            },
        }
    }
    Ok(None)
}

/// JavaScript servers choose the card's shape by the version header, and some refuse it there.
async fn fetch_card(caller: &Caller, url: &Url) -> Result<FoundCard, Failure> {
    let newest = Some(Dialect::V1);
    match fetch_card_as(caller, url, newest).await {
        Err(failure) if matches!(failure.fault, CallFault::NotA2a { status: 400 | 406, .. }) => {
            fetch_card_as(caller, url, None).await
        }
        fetched => fetched,
    }
}

async fn fetch_card_as(caller: &Caller, url: &Url, dialect: Option<Dialect>) -> Result<FoundCard, Failure> {
    let request = Request {
        method: Method::GET,
        url: url.clone(),
        accept: ACCEPT_JSON,
        dialect,
        body: None,
        negotiation: None,
    };
    let limit = caller.http.limits().card_body;
    let (status, headers, body) = caller.exchange(&request, limit).await?;
    if !status.is_success() {
        return Err(Failure::answered(not_a2a(status, &body)));
    }
    let value = json::parse(&body).map_err(|fault| {
        let looks_like_json = body.trim_ascii_start().first() == Some(&b'{');
        let fault = if looks_like_json { CallFault::BadJson(fault) } else { not_a2a(status, &body) };
        Failure::answered(fault)
    })?;
    let card = AgentCard::from_value(value).map_err(|_| Failure::answered(not_a2a(status, &body)))?;
    let etag = headers.get(header::ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(FoundCard { card, url: url.clone(), etag })
}

type Hit = (AgentEndpoint, Confidence, usize, Choice);

struct Search<'a> {
    caller: &'a Caller,
    agent: &'a AgentName,
    base: &'a Url,
    options: &'a DiscoveryOptions,
}

impl Search<'_> {
    async fn run(&self, interfaces: &[Interface]) -> Result<Hit, Failure> {
        let mut worst: Option<Failure> = None;
        let mut note = |failure: Failure| match &worst {
            Some(known) if weight(&known.fault) >= weight(&failure.fault) => {}
            _ => worst = Some(failure),
        };
        for (index, interface) in interfaces.iter().enumerate() {
            let choice = choose(&interface.url, self.base, self.options.card_origin);
            for address in std::iter::once(&choice.interface_url).chain(&choice.otherwise) {
                for dialect in self.dialects(interface) {
                    let endpoint = self.endpoint(interface, address, dialect);
                    let verdict = match self.probe(&endpoint).await {
                        Ok(verdict) => verdict,
                        Err((verdict, failure)) => {
                            note(failure);
                            verdict
                        }
                    };
                    match verdict {
                        ProbeVerdict::Confirmed => {
                            return Ok((endpoint, Confidence::Confirmed, index, choice));
                        }
                        ProbeVerdict::AuthNeeded => {
                            return Ok((endpoint, Confidence::Declared, index, choice));
                        }
                        ProbeVerdict::NextVersion => {}
                        ProbeVerdict::NextCandidate | ProbeVerdict::NotA2a | ProbeVerdict::Unreachable => {
                            break;
                        }
                    }
                }
            }
        }
        // A card that offers only what is not spoken here has no candidate at all.
        let nothing = || Failure::answered(CallFault::NoInterface);
        Err(worst.unwrap_or_else(nothing))
    }

    fn dialects(&self, interface: &Interface) -> Vec<Dialect> {
        match self.options.only {
            Some((_, dialect)) => vec![dialect],
            None => interface.dialects_to_try().to_vec(),
        }
    }

    fn endpoint(&self, interface: &Interface, address: &Url, dialect: Dialect) -> AgentEndpoint {
        AgentEndpoint {
            agent: self.agent.clone(),
            registered_url: self.base.clone(),
            interface_url: address.clone(),
            binding: interface.binding,
            dialect,
            tenant: interface.tenant.clone(),
            plain_http: self.options.plain_http,
            quirks: Quirks::default(),
        }
    }

    /// Asks for a task that cannot exist, once more where nobody answered.
    async fn probe(&self, endpoint: &AgentEndpoint) -> Result<ProbeVerdict, (ProbeVerdict, Failure)> {
        match self.probe_once(endpoint).await {
            Err((ProbeVerdict::Unreachable, _)) => self.probe_once(endpoint).await,
            judged => judged,
        }
    }

    async fn probe_once(&self, endpoint: &AgentEndpoint) -> Result<ProbeVerdict, (ProbeVerdict, Failure)> {
        let call = Call::Get { task_id: TaskId::new(uuid::Uuid::new_v4().to_string()), history_length: 1 };
        let request = wire_request(endpoint, &call, ACCEPT_JSON, 1, None)
            .map_err(|failure| (ProbeVerdict::NextVersion, failure))?;
        let limit = self.caller.http.limits().card_body;
        let (status, body) = match self.caller.exchange(&request, limit).await {
            Ok((status, _, body)) => (status, body),
            Err(failure) => {
                let verdict = match &failure.fault {
                    CallFault::Unauthorized { .. } | CallFault::Forbidden => ProbeVerdict::AuthNeeded,
                    CallFault::Unreachable(_) => judge_probe(endpoint.binding, ProbeAnswer::Silent),
                    _ => ProbeVerdict::NotA2a,
                };
                return Err((verdict, failure));
            }
        };
        let answer = ProbeAnswer::Answered { status: status.as_u16(), body: &body };
        match judge_probe(endpoint.binding, answer) {
            confirmed @ (ProbeVerdict::Confirmed | ProbeVerdict::AuthNeeded) => Ok(confirmed),
            verdict => Err((verdict, Failure::answered(not_a2a(status, &body)))),
        }
    }
}

/// Which failure says most about why no interface was found.
fn weight(fault: &CallFault) -> u8 {
    match fault {
        CallFault::Unreachable(Unreachable::Refused) => 1,
        CallFault::Unreachable(_) => 2,
        CallFault::NotA2a { status: 404 | 405, .. } => 3,
        CallFault::NotA2a { .. } => 4,
        _ => 5,
    }
}

impl Caller {
    /// One whole exchange with its total limit, for what is no call of a known agent.
    async fn exchange(
        &self,
        request: &Request,
        limit: usize,
    ) -> Result<(StatusCode, HeaderMap, bytes::Bytes), Failure> {
        let exchange = async {
            let mut response = self.send(self.http.unary(), request).await?;
            let body = read_body(&mut response, limit).await?;
            Ok((response.status(), response.headers().clone(), body))
        };
        let limited = tokio::time::timeout(self.http.limits().look, exchange).await;
        limited.unwrap_or_else(|_| Err(timed_out()))
    }
}
