//! A callback of our own to our own inbox, through its real socket, in each dialect.

use std::time::{Duration, Instant};

use serde_json::json;
use taskbell_core::callback::{Digest, PATH_PREFIX, ProofPolicy, RegistrationPath};
use taskbell_core::dialect::Dialect;

use crate::api::views::{InboxTestView, ProofsView};
use crate::error::EngineError;
use crate::parts::Parts;
use crate::store::inbox::{self, ItemId};
use crate::store::registrations::{self, NewRegistration, Purpose};
use crate::store::{RegistrationKey, callbacks};

const WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn run(parts: &Parts, http: &reqwest::Client) -> Result<Vec<InboxTestView>, EngineError> {
    let Some(addr) = parts.reach().state().inbox else {
        return Err(EngineError::new(
            "inbox_not_listening",
            "the inbox does not listen; `taskbell doctor` says why",
        ));
    };
    let mut found = Vec::new();
    for dialect in [Dialect::V1, Dialect::V03] {
        found.push(try_one(parts, http, addr, dialect).await?);
    }
    Ok(found)
}

async fn try_one(
    parts: &Parts,
    http: &reqwest::Client,
    addr: std::net::SocketAddr,
    dialect: Dialect,
) -> Result<InboxTestView, EngineError> {
    let path = RegistrationPath::of_random(rand::random());
    let token = uuid::Uuid::new_v4().simple().to_string();
    let url = format!("http://{addr}{PATH_PREFIX}{}", path.as_str());
    let key = {
        let (path, url, digest) = (path.clone(), url.clone(), Digest::of(token.as_bytes()));
        let insert = move |context: &mut crate::store::WriteContext<'_>| {
            let new = NewRegistration {
                path: &path,
                purpose: Purpose::SelfTest,
                agent: None,
                task: None,
                config_id: "self-test",
                url: &url,
                policy: ProofPolicy::Any,
                key_version: 0,
                token: Some(digest),
                credential: None,
            };
            registrations::insert(context, &new)
        };
        parts.store().write(insert).await?
    };
    let outcome = post(http, &url, &token, dialect).await;
    let kept = look(parts, key).await;
    // Its address answers nobody from here on, and nothing of the test is kept.
    parts.store().write(move |context| registrations::delete(context, key)).await?;
    let (stored, proofs) = kept?;
    let mut view = outcome;
    view.stored = stored;
    view.proofs = proofs;
    if view.error.is_none() && !stored {
        view.error = Some("it was answered and not kept".to_owned());
    }
    view.ok = view.error.is_none();
    Ok(view)
}

async fn post(http: &reqwest::Client, url: &str, token: &str, dialect: Dialect) -> InboxTestView {
    let task = "taskbell-self-test";
    let (header, media_type, body) = match dialect {
        Dialect::V1 => (
            "A2A-Notification-Token",
            "application/a2a+json",
            json!({ "statusUpdate": { "taskId": task, "status": { "state": "TASK_STATE_WORKING" } } }),
        ),
        Dialect::V03 => (
            "X-A2A-Notification-Token",
            "application/json",
            json!({ "kind": "task", "id": task, "contextId": task, "status": { "state": "working" } }),
        ),
    };
    let began = Instant::now();
    let answer = http
        .post(url)
        .timeout(WITHIN)
        .header(header, token)
        .header(reqwest::header::CONTENT_TYPE, media_type)
        .body(body.to_string())
        .send()
        .await;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (status, error) = match answer {
        Ok(answer) if answer.status().is_success() => (Some(answer.status().as_u16()), None),
        Ok(answer) => {
            let status = answer.status().as_u16();
            (Some(status), Some(format!("the inbox answered {status}")))
        }
        Err(error) if error.is_timeout() => (None, Some("the inbox did not answer in time".to_owned())),
        Err(_) => (None, Some("the inbox could not be reached".to_owned())),
    };
    InboxTestView {
        dialect: dialect.version().to_owned(),
        ok: false,
        status,
        took_ms,
        stored: false,
        proofs: None,
        error,
    }
}

async fn look(parts: &Parts, key: RegistrationKey) -> Result<(bool, Option<ProofsView>), EngineError> {
    let found = parts.store().read(move |connection| {
        let Some(first) = callbacks::first_of(connection, key)? else { return Ok(None) };
        inbox::get(connection, &ItemId::Callback(first.0))
    });
    let row = found.await?;
    Ok((row.is_some(), row.as_ref().and_then(|row| super::item(row).proofs)))
}
