//! What an agent's callbacks are worth: counted from the rows that are kept, which is some thirty days.

use rusqlite::Connection;
use taskbell_core::missed::WAIT_MS;

use super::error::StoreError;
use super::keys::AgentKey;

/// The counts of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportCard {
    /// Tasks that ended with a registration in place: so many last callbacks were to come.
    pub expected: u64,
    /// Of those, how many came.
    pub arrived: u64,
    /// Of those that came, how many after the end had been found another way.
    pub late: u64,
    /// How late, in the middle; none where none was.
    pub late_median_ms: Option<u64>,
    /// Ends of these that no callback told.
    pub missed: u64,
    /// Callbacks kept, repeats not counted.
    pub received: u64,
    pub confirmed: u64,
    /// Sent again, in the same octets or others.
    pub duplicate: u64,
    pub out_of_order: u64,
    /// Callbacks that do not fit their task, and claims of an end that the task did not have.
    pub unmatched: u64,
    pub wrong_proof: u64,
    /// Refused for any other reason.
    pub refused: u64,
    /// Registrations whose secret the agent wrote into an answer.
    pub echoed_secrets: u64,
}

pub fn of_agent(connection: &Connection, agent: AgentKey) -> Result<ReportCard, StoreError> {
    let mut card = ReportCard::default();
    let count = |value: Option<i64>| value.unwrap_or(0).unsigned_abs();
    let sql = "SELECT count(*), sum(told_at_ms IS NOT NULL), sum(told_at_ms > at_ms),
                   sum(missed AND way = 'push')
               FROM ends WHERE agent_id = ?1 AND registered_at_ms IS NOT NULL AND registered_at_ms <= at_ms - ?2";
    connection.prepare_cached(sql)?.query_row((agent, WAIT_MS), |row| {
        card.expected = count(row.get(0)?);
        card.arrived = count(row.get(1)?);
        card.late = count(row.get(2)?);
        card.missed = count(row.get(3)?);
        Ok(())
    })?;
    card.late_median_ms = late_median(connection, agent, card.late)?;
    let sql =
        "SELECT count(*), sum(c.verdict = 'confirmed'), sum(c.count - 1) + sum(c.verdict = 'duplicate'),
                   sum(c.out_of_order), sum(c.verdict = 'unmatched')
               FROM registrations r JOIN callbacks c ON c.registration_ref = r.id WHERE r.agent_id = ?1";
    connection.prepare_cached(sql)?.query_row([agent], |row| {
        card.received = count(row.get(0)?);
        card.confirmed = count(row.get(1)?);
        card.duplicate = count(row.get(2)?);
        card.out_of_order = count(row.get(3)?);
        card.unmatched = count(row.get(4)?);
        Ok(())
    })?;
    let sql = "SELECT sum(q.count) FROM registrations r JOIN quarantine q ON q.registration_ref = r.id
               WHERE r.agent_id = ?1";
    card.unmatched += count(connection.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?);
    let sql = "SELECT sum(f.count) FILTER (WHERE f.reason = 'proof'), sum(f.count) FILTER (WHERE f.reason NOT IN ('proof', 'other_task'))
               FROM registrations r JOIN refusals f ON f.registration_ref = r.id WHERE r.agent_id = ?1";
    connection.prepare_cached(sql)?.query_row([agent], |row| {
        card.wrong_proof = count(row.get(0)?);
        card.refused = count(row.get(1)?);
        Ok(())
    })?;
    let sql = "SELECT sum(echoed) FROM registrations WHERE agent_id = ?1";
    card.echoed_secrets = count(connection.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?);
    Ok(card)
}

fn late_median(connection: &Connection, agent: AgentKey, late: u64) -> Result<Option<u64>, StoreError> {
    let Some(middle) = late.checked_sub(1).map(|last| last / 2) else { return Ok(None) };
    let sql = "SELECT told_at_ms - at_ms FROM ends WHERE agent_id = ?1 AND registered_at_ms IS NOT NULL
                   AND registered_at_ms <= at_ms - ?3 AND told_at_ms > at_ms
               ORDER BY 1 LIMIT 1 OFFSET ?2";
    let middle = i64::try_from(middle).unwrap_or(i64::MAX);
    let late_ms: i64 =
        connection.prepare_cached(sql)?.query_row((agent, middle, WAIT_MS), |row| row.get(0))?;
    Ok(Some(late_ms.unsigned_abs()))
}
