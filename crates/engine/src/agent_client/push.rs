//! The four calls about push configs. What an agent echoes of our secrets stays within [`PushAnswer`] and out
//! of every error.

use taskbell_core::dialect::call::Call;
use taskbell_core::ids::TaskId;
use taskbell_core::push_answer::{self, PushAnswer, without_secrets};
use taskbell_core::push_config::PushConfig;

use super::{AgentClient, CallError, CallFault};

/// Pages of one task's registrations that are looked at.
const PAGES: usize = 20;

impl AgentClient {
    /// Registers a callback, or replaces the one of the same id.
    pub async fn create_push_config(
        &self,
        task_id: &TaskId,
        config: &PushConfig,
    ) -> Result<PushAnswer, CallError> {
        let call = Call::CreatePushConfig { task_id: task_id.clone(), config: config.clone() };
        self.unary(&call, push_answer::config).await.map_err(|error| masked(error, config))
    }

    /// One registration as the agent keeps it.
    pub async fn push_config(&self, task_id: &TaskId, config_id: &str) -> Result<PushAnswer, CallError> {
        let call = Call::GetPushConfig { task_id: task_id.clone(), config_id: config_id.to_owned() };
        self.unary(&call, push_answer::config).await
    }

    /// Every registration of the task that the agent shows us.
    pub async fn push_configs(&self, task_id: &TaskId) -> Result<Vec<PushAnswer>, CallError> {
        let mut configs = Vec::new();
        let mut page_token = None;
        for _ in 0..PAGES {
            let call = Call::ListPushConfigs { task_id: task_id.clone(), page_token: page_token.clone() };
            let page = self.unary(&call, push_answer::page).await?;
            configs.extend(page.configs);
            match page.next_page_token {
                // The same page again would be for ever.
                Some(next) if page_token.as_ref() != Some(&next) => page_token = Some(next),
                Some(_) | None => break,
            }
        }
        Ok(configs)
    }

    /// Takes a registration back. Fine where there is none (1.0 §3.1.10).
    pub async fn delete_push_config(&self, task_id: &TaskId, config_id: &str) -> Result<(), CallError> {
        let call = Call::DeletePushConfig { task_id: task_id.clone(), config_id: config_id.to_owned() };
        self.unary(&call, |_| Ok(())).await
    }
}

/// Servers quote the request that they refuse.
fn masked(mut error: CallError, config: &PushConfig) -> CallError {
    match &mut error.fault {
        CallFault::Remote { error, .. } => error.message = without_secrets(&error.message, config),
        CallFault::NotA2a { excerpt, .. } => *excerpt = without_secrets(excerpt, config),
        CallFault::Unauthorized { challenge: Some(challenge) } => {
            *challenge = without_secrets(challenge, config);
        }
        _ => {}
    }
    error
}
