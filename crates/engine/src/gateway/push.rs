//! The four push-config methods, and configs given along with a message.

use serde_json::Value;
use taskbell_core::dialect::errors::{ErrorAnswer, ErrorKind};
use taskbell_core::dialect::request::Request;
use taskbell_core::push_config::PushConfigParams;

use super::Caller;
use crate::store::tasks::TaskRow;

/// Whether the card says that push configs are taken.
pub const OFFERED: bool = false;

/// Answers one of the four methods. The task is known to be the caller's; a lost one does not get here.
pub(super) async fn answer(
    _caller: &Caller,
    _task: &TaskRow,
    request: Request,
) -> Result<Value, ErrorAnswer> {
    let _ = request;
    Err(ErrorAnswer::new(ErrorKind::PushNotSupported, "push notifications are not supported"))
}

/// Takes a config that came along with the message that made the task.
pub(super) async fn register_inline(
    _caller: &Caller,
    _task: &TaskRow,
    _params: PushConfigParams,
) -> Result<(), ErrorAnswer> {
    Err(ErrorAnswer::new(ErrorKind::PushNotSupported, "push notifications are not supported"))
}
