//! A callback of our own through the public address: whether it arrives, and whether anything else of ours
//! answers there.
//!
//! The registration is of this one test, with a secret of its own, and gone after it. That the tunnel's process
//! runs proves nothing.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use taskbell_core::callback::{Digest, ProofPolicy, RegistrationPath, Scheme};
use taskbell_core::credential::Secret;
use taskbell_core::public_url::PublicUrl;
use taskbell_core::text::one_line;
use tokio::sync::Mutex;

use super::{ProbeState, PublicAddress};
use crate::error::EngineError;
use crate::parts::Parts;
use crate::store::registrations::{self as rows, NewRegistration, Purpose};
use crate::store::{RegistrationKey, StoreError, callbacks, registration_work};

const EVERY: Duration = Duration::from_secs(600);
/// Sooner again after a failure, and after the address changed: a tunnel needs a moment.
const AGAIN: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(60)];
const WITHIN: Duration = Duration::from_secs(15);
/// Of an answer that is looked at.
const ANSWER: usize = 64 * 1024;
/// What only the gateway's listener answers.
const PRIVATE: [&str; 3] = ["/api/v1/hello?c=taskbell-self-test", "/api/v1/health", "/"];

/// Tests the public address. Clones share one test at a time.
#[derive(Clone)]
pub struct SelfTest {
    parts: Parts,
    http: reqwest::Client,
    turn: Arc<Mutex<()>>,
}

/// What was found.
struct Failure {
    code: &'static str,
    detail: String,
}

impl Failure {
    fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl SelfTest {
    /// `http` follows no redirect and uses no proxy.
    pub fn new(parts: Parts, http: reqwest::Client) -> Self {
        Self { parts, http, turn: Arc::default() }
    }

    /// Runs for ever: each ten minutes, and when the address changes.
    pub async fn run(self) {
        if let Err(error) = self.clean_up().await {
            tracing::warn!(%error, "self-tests of an earlier run were not removed");
        }
        let mut changes = self.parts.reach().changes();
        let mut tested: Option<PublicAddress> = None;
        let mut failures = 0;
        loop {
            let state = changes.borrow_and_update().clone();
            let ready = state.public.clone().filter(|_| state.inbox.is_some());
            if ready != tested {
                failures = 0;
                tested.clone_from(&ready);
            }
            if ready.is_some() {
                match self.run_once().await {
                    Ok(true) => failures = 0,
                    Ok(false) => failures += 1,
                    Err(error) => tracing::warn!(%error, "the public address could not be tested"),
                }
            } else {
                self.parts.reach().change(|state| state.probe = ProbeState::Never);
            }
            let wait = match failures {
                0 => EVERY,
                count => AGAIN.get(count - 1).copied().unwrap_or(EVERY),
            };
            let due = tokio::time::sleep(wait);
            tokio::pin!(due);
            loop {
                tokio::select! {
                    () = &mut due => break,
                    Ok(()) = changes.changed() => {
                        let state = changes.borrow_and_update().clone();
                        if state.public.filter(|_| state.inbox.is_some()) != tested {
                            break;
                        }
                    }
                }
            }
        }
    }

    async fn clean_up(&self) -> Result<(), StoreError> {
        if self.parts.store().read(registration_work::has_self_tests).await? {
            self.parts.store().write(registration_work::delete_self_tests).await?;
        }
        Ok(())
    }

    /// One test of the present public address; whether it was passed. What it found is in the reach.
    ///
    /// # Errors
    /// There is no public address; the store does not take the test's registration.
    pub async fn run_once(&self) -> Result<bool, EngineError> {
        let _turn = self.turn.lock().await;
        let state = self.parts.reach().state();
        let Some(public) = state.public else {
            return Err(EngineError::new(
                "no_address",
                "there is no public address to test; set one with `taskbell settings set public_url URL`",
            ));
        };
        let found = self.test(&public.url).await?;
        let now_ms = self.parts.now_ms();
        let passed = found.is_ok();
        if let Err(failure) = &found {
            tracing::warn!(code = failure.code, "callbacks through the public address: {}", failure.detail);
        }
        self.parts.reach().change(|state| {
            // Meanwhile it may be another address, of which this says nothing.
            if state.public.as_ref().map(|present| &present.url) != Some(&public.url) {
                return;
            }
            state.probe = match (found, &state.probe) {
                (Ok(()), _) => ProbeState::Reached { at_ms: now_ms },
                (Err(failure), before) => {
                    let since_ms = match before {
                        ProbeState::Failing { since_ms, .. } => *since_ms,
                        ProbeState::Never | ProbeState::Reached { .. } => now_ms,
                    };
                    ProbeState::Failing { since_ms, code: failure.code, detail: failure.detail }
                }
            };
        });
        Ok(passed)
    }

    async fn test(&self, public: &PublicUrl) -> Result<Result<(), Failure>, StoreError> {
        let mut random = [0; 26 + 32];
        if getrandom::fill(&mut random).is_err() {
            return Ok(Err(Failure::new("no_randomness", "the system gives no random numbers")));
        }
        let (for_path, for_secret) = random.split_at(26);
        let path = RegistrationPath::of_random(for_path.try_into().unwrap_or([0; 26]));
        let secret = Secret::new(base64_text(for_secret));
        let (kept_path, url, digest) =
            (path.clone(), public.callback(&path), Digest::of(secret.expose().as_bytes()));
        let key = self
            .parts
            .store()
            .write(move |context| {
                let key = rows::insert(
                    context,
                    &NewRegistration {
                        path: &kept_path,
                        purpose: Purpose::SelfTest,
                        agent: None,
                        task: None,
                        config_id: "public-address",
                        url: &url,
                        policy: ProofPolicy::Any,
                        key_version: 1,
                        token: None,
                        credential: Some((Scheme::Bearer, digest)),
                    },
                )?;
                rows::set_registered(context, key, None)?;
                Ok(key)
            })
            .await?;
        let found = self.post(public, &path, &secret, key).await;
        self.parts.store().write(move |context| rows::delete(context, key)).await?;
        let found = found?;
        Ok(match found {
            Ok(()) => self.look_for_more(public).await,
            failed => failed,
        })
    }

    async fn post(
        &self,
        public: &PublicUrl,
        path: &RegistrationPath,
        secret: &Secret,
        key: RegistrationKey,
    ) -> Result<Result<(), Failure>, StoreError> {
        let body = json!({"statusUpdate": {"taskId": "self-test", "contextId": "self-test",
            "status": {"state": "TASK_STATE_WORKING"}}});
        let Ok(mut authorization) = HeaderValue::from_str(&format!("Bearer {}", secret.expose())) else {
            return Ok(Err(Failure::new("internal", "the test's own secret fits no header")));
        };
        authorization.set_sensitive(true);
        let request = self
            .http
            .post(public.callback(path))
            .timeout(WITHIN)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, authorization)
            .body(body.to_string());
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(unreachable(&error))),
        };
        let status = answer.status().as_u16();
        if status != 200 {
            return Ok(Err(refused(status)));
        }
        // Anybody answers 200: what counts is that it arrived here.
        let arrived = self.parts.store().read(move |connection| callbacks::first_of(connection, key)).await?;
        Ok(if arrived.is_some() {
            Ok(())
        } else {
            Err(Failure::new(
                "not_ours",
                "something else answers at the public address; point the tunnel at the inbox",
            ))
        })
    }

    /// Gateway, API and page are for this machine: none of them may answer there.
    async fn look_for_more(&self, public: &PublicUrl) -> Result<(), Failure> {
        for path in PRIVATE {
            let request = self.http.get(public.join(path)).timeout(WITHIN);
            let Ok(answer) = request.send().await else { continue };
            if is_of_the_gateway(answer).await {
                return Err(Failure::new(
                    "gateway_exposed",
                    format!(
                        "the gateway and the API answer at the public address ({path}); let only {} through",
                        taskbell_core::callback::PATH_PREFIX
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The gateway's listener refuses foreign hosts in words of its own, and its page names itself.
async fn is_of_the_gateway(mut answer: reqwest::Response) -> bool {
    let mut body = Vec::new();
    while body.len() < ANSWER
        && let Ok(Some(chunk)) = answer.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    if let Ok(document) = taskbell_core::json::parse(&body) {
        let code = document.pointer("/error/code").and_then(Value::as_str);
        // The inbox's own words for what it does not serve.
        let of_the_inbox = ["not_found", "not_post", "other_host", "browser", "ambiguous"];
        return document.get("hello").is_some() || code.is_some_and(|code| !of_the_inbox.contains(&code));
    }
    String::from_utf8_lossy(&body).contains("<title>Taskbell")
}

fn refused(status: u16) -> Failure {
    let (code, detail) = match status {
        301..=399 => ("redirected", "the public address redirects, which agents do not follow".to_owned()),
        401 | 403 => (
            "refused",
            format!(
                "a callback of our own was refused there (HTTP {status}); a tunnel must not ask for a sign-in or add Authorization"
            ),
        ),
        404 => (
            "not_found",
            "nothing takes callbacks there (HTTP 404); point the tunnel or proxy at the inbox".to_owned(),
        ),
        421 => (
            "other_host",
            "the inbox does not know the host that the tunnel names (HTTP 421); keep the Host header"
                .to_owned(),
        ),
        502..=504 => {
            ("tunnel_broken", format!("the tunnel is there and does not reach the inbox (HTTP {status})"))
        }
        _ => ("refused", format!("a callback of our own was answered with HTTP {status} there")),
    };
    Failure { code, detail }
}

fn unreachable(error: &reqwest::Error) -> Failure {
    let cause = crate::agent_client::cause_text(error);
    Failure::new("unreachable", one_line(&format!("the public address cannot be reached: {cause}"), 200))
}

fn base64_text(octets: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(octets)
}
