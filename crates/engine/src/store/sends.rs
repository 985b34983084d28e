//! Messages that were sent: written down before the first octet leaves, so that a lost answer is known.

use taskbell_core::ids::MessageId;

use super::error::StoreError;
use super::keys::{AgentKey, TaskKey};
use super::writer::WriteContext;

/// Noted before it leaves.
pub fn insert(
    context: &mut WriteContext<'_>,
    agent: AgentKey,
    message_id: &MessageId,
    text: &str,
) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO sends (message_id, agent_id, text, state, sent_at_ms) VALUES (?1, ?2, ?3, 'sent', ?4)";
    let text = super::task_content::excerpt(text);
    context.tx.prepare_cached(sql)?.execute((message_id.as_str(), agent, text, context.now_ms))?;
    Ok(())
}

/// The agent answered, with a task or with the whole answer.
pub fn answered(
    context: &mut WriteContext<'_>,
    message_id: &MessageId,
    task: Option<TaskKey>,
) -> Result<(), StoreError> {
    let sql = "UPDATE sends SET state = 'answered', task_ref = ?2, answered_at_ms = ?3 WHERE message_id = ?1";
    context.tx.prepare_cached(sql)?.execute((message_id.as_str(), task, context.now_ms))?;
    Ok(())
}

/// Octets left and no answer came.
pub fn set_unknown(context: &mut WriteContext<'_>, message_id: &MessageId) -> Result<(), StoreError> {
    set_state(context, message_id, "unknown")
}

/// The agent refused it, or was not reached.
pub fn set_failed(context: &mut WriteContext<'_>, message_id: &MessageId) -> Result<(), StoreError> {
    set_state(context, message_id, "failed")
}

/// After a start: what an earlier run had sent and never saw answered is unknown. How many there are.
pub fn settle_interrupted(context: &mut WriteContext<'_>) -> Result<usize, StoreError> {
    Ok(context.tx.prepare_cached("UPDATE sends SET state = 'unknown' WHERE state = 'sent'")?.execute([])?)
}

fn set_state(context: &mut WriteContext<'_>, message_id: &MessageId, state: &str) -> Result<(), StoreError> {
    let sql = "UPDATE sends SET state = ?2 WHERE message_id = ?1";
    context.tx.prepare_cached(sql)?.execute((message_id.as_str(), state))?;
    Ok(())
}
