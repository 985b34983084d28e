//! One attempt: its secrets, its row, the request, what came of it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use taskbell_core::credential::Secret;
use taskbell_core::delivery::{Failure, Lane, Outcome};
use taskbell_core::push_body::content_type;
use taskbell_core::target::{CallbackTarget, LoopbackTarget};

use super::Dispatcher;
use super::secrets::Unavailable;
use crate::outbound::{AttemptResult, Attempted, Callback, Destination, NotTried};
use crate::rehearsal::{self, Place};
use crate::settings;
use crate::store::deliveries::{self, Begun, Due, Ended};
use crate::store::outbox::Mark;
use crate::store::{SecretKey, StoreError};
use crate::wake::WakeWatch;

/// The names under which receivers look for the token: 1.0's and 0.3's.
const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("a2a-notification-token"), HeaderName::from_static("x-a2a-notification-token")];
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");

/// What has nothing to do with the receiver is looked at again after so long.
const LOCAL_TROUBLE: Duration = Duration::from_secs(10);
/// Between two tries to write down what came of an attempt.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The secrets of one request.
struct Proofs {
    token: Option<Secret>,
    credentials: Option<Secret>,
}

impl Dispatcher {
    /// Sends a reserved delivery, unless it has to wait for something on this machine.
    pub(super) async fn attempt_reserved(&self, due: &Due) -> Result<(), StoreError> {
        let key = due.key;
        let store = self.0.parts.store();
        let proofs = match self.proofs(due.token, due.credentials).await {
            Ok(proofs) => proofs,
            Err(unavailable) => {
                let (code, wait) = (unavailable.error.code(), unavailable.again_after);
                return store.write(move |context| deliveries::hold(context, &[key], code, wait)).await;
            }
        };
        reach(Lane::Reserved, Place::BeforeIntent);
        let Some(begun) = store.write(move |context| deliveries::begin(context, key)).await? else {
            return Ok(());
        };
        // The config may have been replaced between the look at its secrets and the intent.
        let proofs = if (begun.token, begun.credentials) == (due.token, due.credentials) {
            Ok(proofs)
        } else {
            self.proofs(begun.token, begun.credentials).await
        };
        self.send(begun, proofs).await
    }

    /// Tells the progress of a task as it is now.
    pub(super) async fn attempt_best_effort(&self, mark: Mark) -> Result<(), StoreError> {
        let begin = move |context: &mut crate::store::WriteContext<'_>| {
            deliveries::begin_best_effort(context, mark.config, mark.target, mark.updates)
        };
        let Some(begun) = self.0.parts.store().write(begin).await? else { return Ok(()) };
        let proofs = self.proofs(begun.token, begun.credentials).await;
        self.send(begun, proofs).await
    }

    async fn proofs(
        &self,
        token: Option<SecretKey>,
        credentials: Option<SecretKey>,
    ) -> Result<Proofs, Unavailable> {
        let mut found = [None, None];
        for (key, place) in [token, credentials].into_iter().zip(&mut found) {
            if let Some(key) = key {
                *place = Some(self.0.secrets.get(key).await?);
            }
        }
        let [token, credentials] = found;
        Ok(Proofs { token, credentials })
    }

    async fn send(&self, begun: Begun, proofs: Result<Proofs, Unavailable>) -> Result<(), StoreError> {
        let mut watch = WakeWatch::new(self.0.parts.now_ms(), Instant::now());
        let (ended, address) = match proofs {
            Err(unavailable) => {
                let ended =
                    Ended::Uncounted { code: unavailable.error.code(), again_after: unavailable.again_after };
                (ended, None)
            }
            Ok(proofs) => match callback(&begun, &proofs, self.0.parts.now_ms()) {
                Err(failure) => (Ended::Counted(Outcome::Failed(failure)), None),
                Ok(callback) => {
                    reach(begun.lane, Place::AfterIntent);
                    let attempted = self.0.outbound.send(callback).await;
                    (ended(attempted), attempted.address)
                }
            },
        };
        reach(begun.lane, Place::AfterSend);
        // A machine that slept while it waited for an answer lost it by itself.
        let slept = watch.look(self.0.parts.now_ms(), Instant::now()).is_some_and(|ahead_ms| ahead_ms > 0);
        let ended = match ended {
            Ended::Counted(outcome) if slept && !outcome.is_delivered() => {
                Ended::Uncounted { code: "slept", again_after: STORE_PAUSE }
            }
            other => other,
        };
        self.record(begun, ended, address).await
    }

    /// Until it is written down, the delivery stays as being sent.
    async fn record(
        &self,
        begun: Begun,
        ended: Ended,
        address: Option<std::net::IpAddr>,
    ) -> Result<(), StoreError> {
        loop {
            let begun = begun.clone();
            let finish = move |context: &mut crate::store::WriteContext<'_>| {
                let schedule = settings::delivery_schedule(context.tx)?;
                deliveries::finish(context, &begun, ended, address, schedule, rand::random())?;
                reach(begun.lane, Place::BeforeResult);
                Ok(())
            };
            match self.0.parts.store().write(finish).await {
                Err(error) if error.is_passing() => {
                    tracing::warn!(%error, "what came of a callback is not written down yet");
                    tokio::time::sleep(STORE_PAUSE).await;
                }
                other => return other,
            }
        }
    }
}

fn ended(attempted: Attempted) -> Ended {
    match attempted.result {
        AttemptResult::Done(outcome) => Ended::Counted(outcome),
        AttemptResult::NotTried(why @ (NotTried::Offline | NotTried::NoDescriptors)) => {
            Ended::Uncounted { code: why.code(), again_after: LOCAL_TROUBLE }
        }
    }
}

/// The request of an attempt. Errors: the target is not called under the rules of today.
fn callback(begun: &Begun, proofs: &Proofs, now_ms: i64) -> Result<Callback, Failure> {
    let destination = match LoopbackTarget::parse(&begun.url).map_err(Failure::Refused)? {
        Some(_) if !begun.approved => return Err(Failure::NotApproved),
        Some(target) => Destination::Loopback(target),
        None => Destination::Public(CallbackTarget::parse(&begun.url).map_err(Failure::Refused)?),
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(begun.dialect)));
    if let Ok(id) = HeaderValue::from_str(&begun.webhook_id) {
        headers.insert(WEBHOOK_ID, id);
    }
    headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(now_ms / 1_000));
    if let Some(token) = &proofs.token {
        for name in TOKEN_HEADERS {
            headers.insert(name, sensitive(token.expose())?);
        }
    }
    if let (Some(scheme), Some(credentials)) = (begun.scheme, &proofs.credentials) {
        let value = zeroize::Zeroizing::new(format!("{} {}", scheme.word(), credentials.expose()));
        headers.insert(header::AUTHORIZATION, sensitive(&value)?);
    }
    Ok(Callback { destination, headers, body: Bytes::from(begun.body.clone()) })
}

/// Values were judged when they were registered.
fn sensitive(value: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(value).map_err(|_| Failure::NotHttp)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What is rehearsed is the way of reserved deliveries.
fn reach(lane: Lane, place: Place) {
    if lane == Lane::Reserved {
        rehearsal::reach(place);
    }
}

/// Which lane an attempt belongs to, for the log.
pub(super) fn log_failure(lane: Lane, error: &StoreError) {
    tracing::warn!(lane = lane.word(), %error, "a callback was not sent or written down");
}
