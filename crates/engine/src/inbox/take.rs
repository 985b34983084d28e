//! From a request to a stored callback.
//!
//! ```text
//! head ─> registration, proofs ─> (removed) ─> rate ─> media type, length ─> body ─> claim ─> its task? ─> commit ─> 200
//! ```

use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use taskbell_core::callback::{
    Claim, Digest, Judgement, ProofWord, Registered, RegistrationPath, judge, read_claim,
};
use taskbell_core::text;

use super::answer::Answer;
use super::framing::Framed;
use super::registry::Registration;
use super::{Inbox, head};
use crate::rehearsal::{self, Place, Wrong};
use crate::store::callbacks::{self, NewCallback};
use crate::store::refused::{self, NewQuarantine};
use crate::store::registrations::RegistrationState;
use crate::store::{RegistrationKey, StoreError};

/// For the whole body.
const BODY_WITHIN: Duration = Duration::from_secs(5);
/// Octets for which room is made before they are there.
const FIRST_ROOM: u64 = 64 * 1024;

impl Inbox {
    /// `proven` is called once the request has proved itself.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        framed: Framed,
        proven: impl Fn(),
    ) -> Answer {
        let (parts, body) = request.into_parts();
        let path = match head::check(&parts, framed, &self.place()) {
            Ok(path) => path,
            Err(refused) => return refused,
        };
        if let Err(error) = self.0.registry.refresh(self.0.parts.store()).await {
            tracing::warn!(%error, "the registrations could not be read");
            return Answer::NOT_STORED;
        }
        let now_ms = self.0.parts.now_ms();
        let found = self.0.registry.find(&path).filter(|found| !found.is_over(now_ms));
        // The same work for an address that there is not.
        let nothing = Registered::default();
        let registered = found.as_ref().map_or(&nothing, |found| &found.proof);
        let mut judged = judge(registered, head::presented(&parts.headers), now_ms);
        judged.admitted |= rehearsal::is(Wrong::SkipsProof);
        let Some(registration) = found.as_ref().filter(|_| judged.admitted) else {
            let detail = format!("token {}, credential {}", judged.token.word(), judged.credential.word());
            self.0.tally.count(found.map(|found| found.key), "proof", detail);
            return Answer::UNPROVEN;
        };
        proven();
        if registration.state == RegistrationState::Removed {
            return Answer::GONE;
        }
        let taken = self.take(registration, &path, judged, &parts.headers, body).await;
        match taken {
            Ok(()) => {
                self.0.taken.fetch_add(1, Ordering::Relaxed);
                Answer::TAKEN
            }
            Err(Refusal { answer, detail, due }) => {
                tracing::debug!(registration = %path, answer = answer.code(), detail, "a callback was not taken");
                if answer != Answer::UNPROVEN {
                    self.0.tally.count(Some(registration.key), answer.code(), detail);
                }
                if due {
                    self.0.tally.make_due(registration.key);
                }
                answer
            }
        }
    }

    async fn take(
        &self,
        registration: &Registration,
        path: &RegistrationPath,
        proofs: Judgement,
        headers: &hyper::HeaderMap,
        body: Incoming,
    ) -> Result<(), Refusal> {
        if !registration.bucket.take(Instant::now()) {
            return Err(Answer::TOO_MANY.into());
        }
        let length = head::check_body(headers)?;
        let kib = length.unwrap_or(head::MAX_BODY).div_ceil(1024).max(1);
        let room = self.0.bodies.acquire_many(u32::try_from(kib).unwrap_or(u32::MAX));
        let read = async {
            let _room = room.await.map_err(|_| Refusal::from(Answer::NOT_STORED))?;
            let body = read_body(body, length).await?;
            Ok::<_, Refusal>((_room, body))
        };
        let read = tokio::time::timeout(BODY_WITHIN, read).await;
        let (_room, body) = read.map_err(|_| Refusal::from(Answer::TOO_SLOW))??;
        rehearsal::reach(Place::BodyRead);
        assert!(!rehearsal::is(Wrong::Panics), "as wished");
        let sha256 = Digest::of(&body);
        let claim = read_claim(&body)
            .map_err(|fault| Refusal { detail: fault.to_string(), ..Answer::NO_CLAIM.into() })?;
        if registration.task_id.as_ref().is_some_and(|task| *task != claim.task_id) {
            return Err(self.quarantine(registration, &claim, sha256, body.len()).await);
        }
        let new = NewCallback {
            registration: registration.key,
            body,
            sha256,
            headers_json: head::kept(headers),
            proofs,
            claim,
            bound: registration.task_id.is_some(),
        };
        // A sender that leaves now ends this work, and the row may be there with nobody told of it.
        let untold = Untold { inbox: self, registration: registration.key };
        let store = self.0.parts.store().clone();
        let write = async move { store.write(move |context| callbacks::store(context, &new)).await };
        if rehearsal::is(Wrong::AnswersEarly) {
            tokio::spawn(write);
            return Ok(());
        }
        let stored = write.await;
        std::mem::forget(untold);
        rehearsal::reach(Place::AfterCommit);
        match stored {
            Ok(stored) => {
                if let Some(task) = stored.task {
                    self.0.parts.bells().ring_due(task);
                }
                if proofs.token == ProofWord::ValidOld || proofs.credential == ProofWord::ValidOld {
                    tracing::debug!(registration = %path, "a callback still shows the proof before the rotation");
                }
                Ok(())
            }
            Err(error) => Err(self.not_stored(path, &error)),
        }
    }

    /// What is said where nothing could be stored.
    fn not_stored(&self, path: &RegistrationPath, error: &StoreError) -> Refusal {
        if let StoreError::Missing { .. } = error {
            // The task was deleted, and its registrations with it.
            self.0.registry.forget(path);
            return Refusal { answer: Answer::UNPROVEN, detail: String::new(), due: false };
        }
        tracing::warn!(%error, registration = %path, "a callback could not be stored");
        Refusal { detail: error.code().to_owned(), ..Answer::NOT_STORED.into() }
    }

    async fn quarantine(
        &self,
        registration: &Registration,
        claim: &Claim,
        sha256: Digest,
        size: usize,
    ) -> Refusal {
        let detail = text::plain(claim.task_id.as_str());
        let new = NewQuarantine {
            registration: registration.key,
            reason: "other_task",
            size: size as u64,
            sha256,
            detail: detail.clone(),
        };
        let stored = self.0.parts.store().write(move |context| refused::quarantine(context, &new)).await;
        if let Err(error) = stored {
            tracing::warn!(%error, "a callback about another task could not be noted");
        }
        Refusal { answer: Answer::OTHER_TASK, detail, due: false }
    }
}

/// Makes a task due where nobody waited for what came of its callback.
struct Untold<'a> {
    inbox: &'a Inbox,
    registration: RegistrationKey,
}

impl Drop for Untold<'_> {
    fn drop(&mut self) {
        self.inbox.0.tally.make_due(self.registration);
    }
}

/// Not taken, after it proved itself.
struct Refusal {
    answer: Answer,
    /// A cleaned line.
    detail: String,
    /// The task is read all the same.
    due: bool,
}

impl From<Answer> for Refusal {
    fn from(answer: Answer) -> Self {
        Self { answer, detail: String::new(), due: true }
    }
}

async fn read_body(mut body: Incoming, length: Option<u64>) -> Result<Vec<u8>, Refusal> {
    let room = usize::try_from(length.unwrap_or(FIRST_ROOM).min(FIRST_ROOM)).unwrap_or_default();
    let mut octets = Vec::with_capacity(room);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Refusal {
            answer: Answer::CUT,
            detail: text::plain(&error.to_string()),
            due: !is_framed_wrongly(&error),
        })?;
        // Trailers are of no use here.
        let Ok(data) = frame.into_data() else { continue };
        if octets.len() as u64 + data.len() as u64 > head::MAX_BODY {
            return Err(Answer::TOO_LARGE.into());
        }
        octets.extend_from_slice(&data);
    }
    Ok(octets)
}

/// Chunks that are none, and not a sender that left: nobody who speaks HTTP sends such a thing.
fn is_framed_wrongly(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}
