//! The engine: everything put together, and what its faces can ask of it.
//!
//! One a data folder, decided by the folder's lock before a port or the database is opened. The command
//! line and the page call [`Engine`] through the API, the window in process.

mod condition;
mod find;
mod preferences;
mod push;
mod quiet;

pub(crate) use find::read_query;

use std::sync::Arc;
use std::time::Duration;

use taskbell_core::dialect::Dialect;
use taskbell_core::ids::{AgentName, TaskId, TaskRef};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::agent_client::{Http, HttpSettings};
use crate::agents::manage::{AgentTest, AgentWish};
use crate::agents::{Agent, Agents};
use crate::api::access::Access;
use crate::api::views::{
    AgentView, ExportFormat, ExportView, NoticeView, Page, ReconcileItem, ReconcileRequest, RenderedView,
    ReportCardView, TaskDetail, TaskSummary,
};
use crate::claims::{self, Claims};
use crate::dispatcher::Dispatcher;
use crate::due::DueReads;
use crate::error::EngineError;
use crate::follower::Follower;
use crate::gateway::Gateway;
use crate::health::watch::{self as health_watch, HealthWatch};
use crate::inbox::Inbox;
use crate::keychain::Keychain;
use crate::notifier::{Notices, Notifier};
use crate::parts::Parts;
use crate::present;
use crate::reachability::self_test::SelfTest;
use crate::reachability::{AddressSource, tunnel};
use crate::reconciler::Reconciler;
use crate::registrations::Registrations;
use crate::settings;
use crate::store::changes;
use crate::store::tasks::{self as rows, Channel, Following, TaskRow};
use crate::store::{
    OpenReport, Store, TaskKey, agents as agent_rows, ends, flags, health_history, inbox, lists, report_card,
    sends, task_content,
};
use crate::tasks::{Imported, Outgoing, Sent, Tasks};
use crate::{missed, search_index, upkeep, wake};

/// Rows of a timeline shown with a task. The rest is paged through its changes.
const TIMELINE: u32 = 1_000;
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 1_000;

/// The workers and what they share. Clones share them.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    parts: Parts,
    tasks: Tasks,
    reconciler: Reconciler,
    notifier: Notifier,
    dispatcher: Dispatcher,
    gateway: Gateway,
    inbox: Inbox,
    registrations: Registrations,
    self_test: SelfTest,
    /// For what is asked of ourselves.
    own_http: reqwest::Client,
    keychain: Keychain,
    opened: OpenReport,
    health: HealthWatch,
    /// Who may call, where somebody listens.
    access: std::sync::RwLock<Option<Arc<Access>>>,
    stop: Arc<Notify>,
    workers: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Starts the workers on a store that is open. The keychain is probed meanwhile. What a program runs is
    /// [`crate::running::RunningEngine`], which has the data folder and the listener as well.
    pub async fn with_store(
        store: Store,
        opened: OpenReport,
        keychain: Keychain,
    ) -> Result<Self, EngineError> {
        Self::with_desktop(store, opened, keychain, Notices::Recorded).await
    }

    /// As [`Self::with_store`], and says where notices are shown.
    pub async fn with_desktop(
        store: Store,
        opened: OpenReport,
        keychain: Keychain,
        notices: Notices,
    ) -> Result<Self, EngineError> {
        let clock = crate::store::wall_clock();
        let http = Http::new(HttpSettings::default())
            .map_err(|error| EngineError::new("client_setup_failed", error.to_string()))?;
        let own_http = http.unary().clone();
        let agents = Agents::load(store.clone(), keychain.clone(), http).await?;
        let interrupted = store.write(sends::settle_interrupted).await?;
        if interrupted > 0 {
            tracing::warn!(
                interrupted,
                "messages were on their way when the engine stopped; their outcome is unknown"
            );
        }
        store.write(ends::note_run).await?;
        let times = store.read(settings::follow_times).await?;
        let parts = Parts::new(store, agents, clock, times);
        let public_url = parts.store().read(settings::public_url).await?;
        parts.reach().set_source(AddressSource::Setting, public_url);
        let (dispatcher, callbacks) = Dispatcher::new(parts.clone(), keychain.clone()).await?;
        let gateway = Gateway::load(parts.clone(), dispatcher.clone()).await?;
        let health = HealthWatch::new(parts.store().read(health_history::latest).await?);
        let (notifier, notices) = Notifier::new(parts.clone(), notices);
        let engine = Self(Arc::new(Inner {
            notifier,
            dispatcher,
            gateway,
            tasks: Tasks::new(parts.clone()),
            reconciler: Reconciler::new(parts.clone()),
            inbox: Inbox::new(parts.clone()),
            registrations: Registrations::new(parts.clone(), keychain.clone()),
            self_test: SelfTest::new(parts.clone(), own_http.clone()),
            own_http,
            keychain,
            opened,
            health,
            access: std::sync::RwLock::default(),
            stop: Arc::new(Notify::new()),
            workers: std::sync::Mutex::default(),
            parts: parts.clone(),
        }));
        engine.take_settings().await?;
        let follower = Follower::new(parts.clone());
        let reconciler = engine.0.reconciler.clone();
        let due = DueReads::new(parts.clone(), reconciler.clone());
        let stop = Arc::clone(&engine.0.stop);
        let workers = [
            tokio::spawn(follower.run()),
            tokio::spawn(reconciler.run(stop)),
            tokio::spawn(due.run()),
            tokio::spawn(missed::run(parts.clone())),
            tokio::spawn(notices.run()),
            tokio::spawn(callbacks.run()),
            tokio::spawn(wake::run(parts.clone())),
            tokio::spawn(engine.0.registrations.clone().run()),
            tokio::spawn(engine.0.self_test.clone().run()),
            tokio::spawn(tunnel::run(parts.clone())),
            tokio::spawn(search_index::run(parts.store().clone())),
            tokio::spawn(upkeep::run(parts)),
            tokio::spawn(upkeep::probe_keychain(engine.0.keychain.clone())),
            tokio::spawn(health_watch::run(engine.clone())),
        ];
        engine.workers().extend(workers);
        Ok(engine)
    }

    /// Stops the workers and closes the store: what was acknowledged is safe, at the latest after `limit`.
    pub async fn stop(&self, limit: Duration) {
        self.0.stop.notify_waiters();
        for worker in self.workers().drain(..) {
            worker.abort();
        }
        if let Err(error) = self.store().close(limit).await {
            tracing::warn!(%error, "the store was not closed cleanly; it is checked at the next start");
        }
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.0.workers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn store(&self) -> &Store {
        self.0.parts.store()
    }

    pub fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Where agents call back.
    pub fn inbox(&self) -> &Inbox {
        &self.0.inbox
    }

    fn agents_at_hand(&self) -> &Agents {
        self.0.parts.agents()
    }

    /// What clients registered to be called back, and what is sent for it.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.0.dispatcher
    }

    // Agents.

    pub async fn add_agent(&self, wish: AgentWish) -> Result<AgentView, EngineError> {
        let agent = self.agents_at_hand().add(wish).await?;
        self.agent_view(&agent).await
    }

    pub async fn agents(&self) -> Result<Vec<AgentView>, EngineError> {
        let mut views = Vec::new();
        for agent in self.agents_at_hand().all() {
            views.push(self.agent_view(&agent).await?);
        }
        Ok(views)
    }

    pub async fn agent(&self, name: &AgentName) -> Result<AgentView, EngineError> {
        let agent = self.agents_at_hand().by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        self.agent_view(&agent).await
    }

    pub async fn remove_agent(&self, name: &AgentName) -> Result<(), EngineError> {
        let agent = self.agents_at_hand().by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let (key, settings) = (agent.key, settings::keys_of(name));
        let followed = self.store().read(rows::followed).await?;
        self.0.registrations.let_go_of_agent(agent).await?;
        self.agents_at_hand().remove(name).await?;
        // Whoever listens to its tasks here will hear nothing more.
        for row in followed.into_iter().filter(|row| row.agent_key == key) {
            self.0.parts.hubs().lose(row.key);
        }
        self.0.registrations.forget_agent(key).await;
        // A namesake added later is another agent.
        self.store()
            .write(move |context| {
                settings.iter().try_for_each(|key| crate::store::settings::clear(context, key))
            })
            .await?;
        self.0.parts.bells().following.notify_one();
        Ok(())
    }

    pub async fn test_agent(&self, name: &AgentName) -> Result<(AgentView, AgentTest), EngineError> {
        let (agent, test) = self.agents_at_hand().test(name).await?;
        self.poke_tasks_of(&agent).await?;
        Ok((self.agent_view(&agent).await?, test))
    }

    pub async fn pin_dialect(
        &self,
        name: &AgentName,
        dialect: Option<Dialect>,
    ) -> Result<AgentView, EngineError> {
        let agent = self.agents_at_hand().pin_dialect(name, dialect).await?;
        self.agent_view(&agent).await
    }

    /// Tasks that waited for a sign-in are read at once.
    pub async fn set_credential(
        &self,
        name: &AgentName,
        credential: Option<taskbell_core::credential::Credential>,
    ) -> Result<AgentView, EngineError> {
        let agent = self.agents_at_hand().set_credential(name, credential).await?;
        self.poke_tasks_of(&agent).await?;
        self.agent_view(&agent).await
    }

    async fn poke_tasks_of(&self, agent: &Agent) -> Result<(), EngineError> {
        let key = agent.key;
        for row in self.store().read(rows::followed).await?.into_iter().filter(|row| row.agent_key == key) {
            self.0.parts.bells().ring_task(row.key);
        }
        Ok(())
    }

    pub async fn report_card(&self, name: &AgentName) -> Result<ReportCardView, EngineError> {
        let agent = self.agents_at_hand().by_name(name).ok_or_else(|| EngineError::unknown_agent(name))?;
        let key = agent.key;
        let (card, oddities) = self
            .store()
            .read(move |connection| {
                Ok((report_card::of_agent(connection, key)?, agent_rows::oddities(connection, key)?))
            })
            .await?;
        Ok(present::report_card(agent.name(), card, oddities))
    }

    async fn agent_view(&self, agent: &Agent) -> Result<AgentView, EngineError> {
        let key = agent.key;
        let (oddities, open) = self
            .store()
            .read(move |connection| {
                Ok((agent_rows::oddities(connection, key)?, rows::count_open(connection, key)?))
            })
            .await?;
        Ok(present::agent(agent, oddities, open))
    }

    // Tasks.

    /// A task's summary follows with [`Self::summary_of`] where it made one.
    pub async fn send(&self, name: &AgentName, outgoing: Outgoing) -> Result<Sent, EngineError> {
        self.0.tasks.send(name, outgoing).await
    }

    pub async fn watch(&self, name: &AgentName, task_id: &TaskId) -> Result<TaskSummary, EngineError> {
        let key = self.0.tasks.watch(name, task_id).await?;
        self.summary_of(key).await
    }

    pub async fn import(&self, name: &AgentName) -> Result<Imported, EngineError> {
        self.0.tasks.import(name).await
    }

    /// The task that a text names: `AGENT/TASKID`, or a prefix of the id that fits one task only.
    pub async fn resolve(&self, text: &str) -> Result<TaskRef, EngineError> {
        let task: TaskRef = text.parse().map_err(|error: taskbell_core::ids::TaskRefError| {
            EngineError::new("usage", error.to_string())
        })?;
        Ok(self.row(&task).await?.task_ref())
    }

    async fn row(&self, task: &TaskRef) -> Result<TaskRow, EngineError> {
        let wanted = task.clone();
        let found = self
            .store()
            .read(move |connection| match rows::find(connection, &wanted)? {
                Some(row) => Ok(vec![row]),
                None => rows::find_by_prefix(connection, &wanted.agent, wanted.task.as_str()),
            })
            .await?;
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(row), None) => Ok(row),
            (Some(_), Some(_)) => Err(EngineError::new(
                "ambiguous_task",
                format!(
                    "several tasks of agent {} begin with {}; write more of the id",
                    task.agent, task.task
                ),
            )),
            (None, _) if self.agents_at_hand().by_name(&task.agent).is_none() => {
                Err(EngineError::unknown_agent(&task.agent))
            }
            (None, _) => Err(EngineError::unknown_task(task)),
        }
    }

    pub async fn summary_of(&self, key: TaskKey) -> Result<TaskSummary, EngineError> {
        let row = self.store().read(move |connection| rows::get(connection, key)).await?;
        Ok(present::summary(&row, self.0.parts.now_ms()))
    }

    pub async fn summary(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        Ok(present::summary(&self.row(task).await?, self.0.parts.now_ms()))
    }

    pub async fn task(&self, task: &TaskRef) -> Result<TaskDetail, EngineError> {
        let key = self.row(task).await?.key;
        let (row, content, timeline, callbacks, note) = self
            .store()
            .read(move |connection| {
                let row = rows::get(connection, key)?;
                let content = task_content::load(connection, key)?;
                let of_task = inbox::ItemFilter { task: Some(key), ..inbox::ItemFilter::default() };
                let callbacks = inbox::list(connection, &of_task, None, PAGE)?;
                let timeline = changes::last_changes_of_task(connection, key, TIMELINE)?;
                Ok((row, content, timeline, callbacks, flags::note(connection, key)?))
            })
            .await?;
        let task_ref = row.task_ref();
        let timeline =
            timeline.iter().map(|change| present::change(change, Some(task_ref.clone()), None)).collect();
        let callbacks = callbacks.iter().map(claims::item).collect();
        let mut detail =
            present::detail(&row, self.0.parts.now_ms(), &content.0, &content.1, timeline, callbacks);
        detail.note = note;
        detail.registrations = self.registration_views(self.0.registrations.of_task(key).await?).await?;
        Ok(detail)
    }

    /// What the agent wrote, as a tree to show.
    pub async fn rendered(&self, task: &TaskRef) -> Result<RenderedView, EngineError> {
        let key = self.row(task).await?.key;
        let content = self.store().read(move |connection| task_content::load(connection, key)).await?;
        // A long text takes a while.
        tokio::task::spawn_blocking(move || crate::rendered::rendered(&content.0, &content.1))
            .await
            .map_err(|_| EngineError::new("internal", format!("failed to render task {task}")))
    }

    /// A task as files that leave.
    pub async fn export(&self, task: &TaskRef, format: ExportFormat) -> Result<ExportView, EngineError> {
        let detail = self.task(task).await?;
        let key = self.row(task).await?.key;
        let content = self.store().read(move |connection| task_content::load(connection, key)).await?;
        // Packing takes a while.
        tokio::task::spawn_blocking(move || crate::export::export(&detail, &content.0, format))
            .await
            .map_err(|_| EngineError::new("internal", format!("failed to export task {task}")))?
    }

    /// Removes a task and what is kept of it. The id is exact here: a prefix that fits one task today is no
    /// permission to remove it.
    pub async fn delete_task(&self, task: &TaskRef) -> Result<(), EngineError> {
        let wanted = task.clone();
        let found = self.store().read(move |connection| rows::find(connection, &wanted)).await?;
        let row = found.ok_or_else(|| EngineError::unknown_task(task))?;
        self.0.registrations.let_go_of(&row).await?;
        let key = row.key;
        self.store().write(move |context| rows::delete(context, key)).await?;
        self.0.parts.bells().following.notify_one();
        Ok(())
    }

    pub async fn reply(&self, task: &TaskRef, text: String) -> Result<TaskSummary, EngineError> {
        let row = self.row(task).await?;
        self.0.tasks.reply(&row, text).await?;
        self.summary_of(row.key).await
    }

    pub async fn cancel(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        let row = self.row(task).await?;
        self.0.tasks.cancel(&row).await?;
        self.summary_of(row.key).await
    }

    pub async fn pause(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_following(task, Following::Paused).await
    }

    pub async fn resume(&self, task: &TaskRef) -> Result<TaskSummary, EngineError> {
        self.set_following(task, Following::On).await
    }

    async fn set_following(&self, task: &TaskRef, following: Following) -> Result<TaskSummary, EngineError> {
        let row = self.row(task).await?;
        if row.following == Following::Ended {
            return Err(EngineError::new(
                "task_ended",
                format!(
                    "task {} has ended {}; reconcile it if you doubt that",
                    row.task_ref(),
                    row.state_word()
                ),
            ));
        }
        let key = row.key;
        self.store().write(move |context| rows::set_following(context, key, following)).await?;
        self.0.parts.bells().following.notify_one();
        self.summary_of(key).await
    }

    /// Reads the tasks named: all open ones, those of an agent, those changed since, or single ones.
    pub async fn reconcile(&self, request: ReconcileRequest) -> Result<Vec<ReconcileItem>, EngineError> {
        let mut wanted = Vec::new();
        for task in &request.tasks {
            wanted.push(self.row(task).await?);
        }
        if let Some(agent) = &request.agent
            && self.agents_at_hand().by_name(agent).is_none()
        {
            return Err(EngineError::unknown_agent(agent));
        }
        if request.all || request.agent.is_some() || request.since_ms.is_some() {
            let since_ms = request.since_ms.and_then(|ago| i64::try_from(ago).ok());
            let filter = lists::TaskFilter {
                open: request.since_ms.is_none(),
                agent: request.agent,
                since_ms: since_ms.map(|ago| self.0.parts.now_ms().saturating_sub(ago)),
                archived: true,
                ..lists::TaskFilter::default()
            };
            let all =
                self.store().read(move |connection| lists::list(connection, &filter, None, u32::MAX)).await?;
            wanted.extend(all);
        }
        wanted.sort_by_key(|row| row.key);
        wanted.dedup_by_key(|row| row.key);
        let mut found = self.0.reconciler.reconcile(wanted, Channel::Manual).await;
        self.0.reconciler.add_missed(&mut found).await?;
        found.sort_by(|one, other| one.task.cmp(&other.task));
        Ok(found.into_iter().map(present::reconciled).collect())
    }

    // Callbacks.

    pub fn claims(&self) -> Claims {
        Claims::new(self.0.parts.clone(), self.0.own_http.clone())
    }

    // Notices.

    pub fn notifier(&self) -> &Notifier {
        &self.0.notifier
    }

    /// The newest first.
    pub async fn notices(&self, before: Option<i64>, limit: u32) -> Result<Page<NoticeView>, EngineError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let found = self
            .store()
            .read(move |connection| crate::store::notices::list(connection, before, limit))
            .await?;
        let next = match found.last() {
            Some(last) if found.len() == limit as usize => Some(last.id.to_string()),
            Some(_) | None => None,
        };
        Ok(Page { items: found.iter().map(present::notice).collect(), next })
    }

    /// Shows one and says what came of it.
    pub async fn test_notice(&self) -> Result<NoticeView, EngineError> {
        Ok(present::notice(&self.0.notifier.show_test().await?))
    }

    // The gateway.

    pub fn gateway(&self) -> &Gateway {
        &self.0.gateway
    }
}
