//! One callback with everything kept of it, beside the task as read.

use rusqlite::Connection;
use serde_json::{Map, Value};
use taskbell_core::callback::PATH_PREFIX;
use taskbell_core::task::{StreamEvent, Task};
use taskbell_core::verdict::{as_task, differences};

use super::{item, task_of};
use crate::api::views::{CallbackDetail, ConfirmationView, DifferenceView, UtcTime};
use crate::store::callbacks::{self, CallbackRow};
use crate::store::inbox::{self, ConfirmationRow, ItemId, ItemRow};
use crate::store::registrations::{self, RegistrationRow};
use crate::store::{CallbackKey, StoreError, verdicts};

/// Characters of a differing value that are shown; the documents have all of it.
const SHOWN: usize = 2_000;

pub(super) struct Found {
    item: ItemRow,
    callback: Option<CallbackRow>,
    confirmation: Option<ConfirmationRow>,
    registration: RegistrationRow,
}

pub(super) fn load(connection: &Connection, id: &ItemId) -> Result<Option<Found>, StoreError> {
    let Some(item) = inbox::get(connection, id)? else { return Ok(None) };
    let callback = match id {
        ItemId::Callback(number) => Some(callbacks::get(connection, CallbackKey(*number))?),
        ItemId::Quarantined(_) | ItemId::Refused(..) => None,
    };
    let confirmation = match callback.as_ref().and_then(|callback| callback.confirmation) {
        Some(confirmation) => inbox::confirmation(connection, confirmation)?,
        None => None,
    };
    let registration = registrations::get(connection, item.registration)?;
    Ok(Some(Found { item, callback, confirmation, registration }))
}

pub(super) fn detail(found: Found) -> CallbackDetail {
    let Found { item: row, callback, confirmation, registration } = found;
    let claim =
        callback.as_ref().and_then(|callback| verdicts::read_body(callback.body.as_deref(), callback.shape));
    let task = confirmation.as_ref().filter(|row| !row.shortened).and_then(|row| task_of(&row.document));
    let differences = match (&claim, &task) {
        (Some(claim), Some(task)) => difference_views(claim, task),
        _ => Vec::new(),
    };
    let headers = callback.as_ref().and_then(|callback| match serde_json::from_str(&callback.headers_json) {
        Ok(Value::Object(headers)) => Some(headers),
        Ok(_) | Err(_) => None,
    });
    CallbackDetail {
        item: item(&row),
        headers: headers.unwrap_or_else(Map::new),
        body: callback
            .and_then(|callback| callback.body)
            .map(|body| String::from_utf8_lossy(&body).into_owned()),
        claim: claim.as_ref().map(as_task),
        confirmation: confirmation.map(|row| ConfirmationView {
            at: UtcTime::from_ms(row.at_ms),
            document: serde_json::from_str(&row.document).unwrap_or(Value::Null),
            shortened: row.shortened,
        }),
        differences,
        url: masked(&registration),
        policy: registration.proof.policy.word().to_owned(),
    }
}

/// The address without the part that cannot be guessed.
fn masked(registration: &RegistrationRow) -> String {
    let base = registration.url.split_once(PATH_PREFIX).map_or("", |(base, _)| base);
    format!("{base}{PATH_PREFIX}{}", registration.path)
}

pub(super) fn difference_views(claim: &StreamEvent, task: &Task) -> Vec<DifferenceView> {
    differences(claim, task)
        .into_iter()
        .map(|difference| DifferenceView {
            pointer: difference.pointer,
            claimed: shortened(difference.claimed),
            confirmed: difference.confirmed.map(shortened),
        })
        .collect()
}

fn shortened(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return value,
    };
    match text.char_indices().nth(SHOWN) {
        None => value,
        Some((end, _)) => Value::String(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}
