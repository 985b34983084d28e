//! What can be asked of registrations and of our own addresses.

use taskbell_core::callback::Scheme;
use taskbell_core::ids::TaskRef;

use super::Engine;
use crate::api::views::{ReachView, ReasonView, RegistrationView, RegistrationsView};
use crate::error::EngineError;
use crate::present;
use crate::registrations::Absence;
use crate::store::registrations::RegistrationRow;
use crate::store::{StoreError, registration_work as work, registrations as rows, tasks};

impl Engine {
    /// Those of all tasks that are not done with.
    pub async fn registrations(&self) -> Result<RegistrationsView, EngineError> {
        let open = self.store().read(work::open).await?;
        let mut items = Vec::with_capacity(open.len());
        for row in open {
            let key = row.key;
            let row = self.store().read(move |connection| rows::get(connection, key)).await?;
            items.extend(self.registration_view(row).await?);
        }
        let reason = match self.parts().reach().address_for(false) {
            Some(_) => None,
            None => Some(reason_of(Absence::NoPublicAddress)),
        };
        Ok(RegistrationsView { items, next: None, reason })
    }

    pub async fn registrations_of(&self, task: &TaskRef) -> Result<RegistrationsView, EngineError> {
        let row = self.row(task).await?;
        let found = self.0.registrations.of_task(row.key).await?;
        let reason = match self.parts().agents().get(row.agent_key) {
            None => None,
            Some(agent) => self.0.registrations.absence_of(&agent).await?.map(reason_of),
        };
        Ok(RegistrationsView { items: self.registration_views(found).await?, next: None, reason })
    }

    pub async fn register_push(
        &self,
        task: &TaskRef,
        scheme: Scheme,
    ) -> Result<RegistrationView, EngineError> {
        let row = self.row(task).await?;
        let made = self.0.registrations.register(&row, scheme).await?;
        self.one_view(made).await
    }

    pub async fn remove_push(&self, task: &TaskRef) -> Result<RegistrationsView, EngineError> {
        let row = self.row(task).await?;
        let removed = self.0.registrations.remove(&row).await?;
        Ok(RegistrationsView { items: self.registration_views(removed).await?, next: None, reason: None })
    }

    pub async fn rotate_push(&self, task: &TaskRef) -> Result<RegistrationView, EngineError> {
        let row = self.row(task).await?;
        let rotated = self.0.registrations.rotate(&row).await?;
        self.one_view(rotated).await
    }

    pub fn reachability(&self) -> ReachView {
        present::reach(&self.parts().reach().state())
    }

    /// Errors: `no_address` where there is no public address to test.
    pub async fn test_reachability(&self) -> Result<ReachView, EngineError> {
        self.0.self_test.run_once().await?;
        Ok(self.reachability())
    }

    pub(super) async fn registration_views(
        &self,
        found: Vec<RegistrationRow>,
    ) -> Result<Vec<RegistrationView>, EngineError> {
        let mut views = Vec::with_capacity(found.len());
        for row in found {
            views.extend(self.registration_view(row).await?);
        }
        Ok(views)
    }

    async fn one_view(&self, row: RegistrationRow) -> Result<RegistrationView, EngineError> {
        let gone = || EngineError::new("no_registration", "the registration has gone with its task");
        self.registration_view(row).await?.ok_or_else(gone)
    }

    /// `None`: it is of no task.
    async fn registration_view(&self, row: RegistrationRow) -> Result<Option<RegistrationView>, StoreError> {
        let (Some(task), key) = (row.task, row.key) else { return Ok(None) };
        let (task, times) = self
            .store()
            .read(move |connection| Ok((tasks::get(connection, task)?, work::times(connection, key)?)))
            .await?;
        Ok(Some(present::registration(&row, &task, times)))
    }
}

fn reason_of(absence: Absence) -> ReasonView {
    ReasonView { code: absence.word().to_owned(), detail: absence.detail().to_owned() }
}
