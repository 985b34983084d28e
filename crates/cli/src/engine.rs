//! The operations of the engine that commands use, with the types of the API. One list, nothing else.

use taskbell_core::ids::{AgentName, ClientName, TaskId, TaskRef};
use taskbell_core::search::Screen;
use taskbell_engine::api::views::{
    AgentTestView, AgentView, AllowTargetRequest, ArchiveRequest, CallbackDetail, CallbackView, ClientView,
    CredentialRequest, DeliveryView, DiagnosticsPart, ExportFormat, ExportView, HealthView, ImportOutcome,
    InboxTestView, MuteRequest, NewAgentRequest, NewClientRequest, NewClientView, NoteRequest, NoticeView,
    Page, PageLoginView, PinDialectRequest, PinRequest, QuietRequest, QuietView, ReachView, ReconcileItem,
    ReconcileRequest, RegisterRequest, RegistrationView, RegistrationsView, ReplayView, ReplyRequest,
    ReportCardView, ResolvedView, SaveViewRequest, SavedView, SelfTestItem, SendOutcome, SendRequestView,
    SettingChange, SettingRequest, SettingView, SettingsFile, SnoozeRequest, TargetView, TaskDetail,
    TaskFilter, TaskSummary, WatchRequest,
};
use taskbell_engine::api_client::{ApiClient, ChangeFeed, ClientError, Endpoint};
use taskbell_engine::claims::ClaimFilter;
use taskbell_engine::data_dir::DataDir;

type Answer<T> = Result<T, ClientError>;

/// A running engine that has proved itself.
#[derive(Debug, Clone)]
pub struct Engine(ApiClient);

impl Engine {
    pub async fn connect(dir: &DataDir) -> Answer<Self> {
        ApiClient::connect(dir).await.map(Self)
    }

    /// The same folder's engine after a restart.
    pub async fn again(&self) -> Answer<Self> {
        self.0.again().await.map(Self)
    }

    pub async fn agents(&self) -> Answer<Page<AgentView>> {
        self.0.get("agents").await
    }

    pub async fn agent(&self, name: &AgentName) -> Answer<AgentView> {
        self.0.get(Endpoint::agent(name, "")).await
    }

    pub async fn add_agent(&self, agent: &NewAgentRequest) -> Answer<AgentView> {
        self.0.post("agents", agent).await
    }

    pub async fn remove_agent(&self, name: &AgentName) -> Answer<()> {
        self.0.delete(Endpoint::agent(name, "")).await
    }

    pub async fn set_credential(
        &self,
        name: &AgentName,
        credential: &CredentialRequest,
    ) -> Answer<AgentView> {
        self.0.put(Endpoint::agent(name, "credential"), credential).await
    }

    pub async fn pin_dialect(&self, name: &AgentName, pin: &PinDialectRequest) -> Answer<AgentView> {
        self.0.put(Endpoint::agent(name, "dialect"), pin).await
    }

    pub async fn test_agent(&self, name: &AgentName) -> Answer<AgentTestView> {
        self.0.post(Endpoint::agent(name, "test"), &serde_json::json!({})).await
    }

    pub async fn import(&self, name: &AgentName) -> Answer<ImportOutcome> {
        self.0.post(Endpoint::agent(name, "import"), &serde_json::json!({})).await
    }

    pub async fn send(&self, name: &AgentName, message: &SendRequestView) -> Answer<SendOutcome> {
        self.0.post(Endpoint::agent(name, "send"), message).await
    }

    pub async fn watch(&self, name: &AgentName, task_id: &TaskId) -> Answer<TaskSummary> {
        let request = WatchRequest { task_id: task_id.clone() };
        self.0.post(Endpoint::agent(name, "watch"), &request).await
    }

    pub async fn tasks(&self, filter: &TaskFilter) -> Answer<Page<TaskSummary>> {
        let flag = |holds: bool| holds.then_some(true);
        let mut endpoint = Endpoint::from("tasks")
            .with_some("open", flag(filter.open))
            .with_some("needsYou", flag(filter.needs_you))
            .with_some("agent", filter.agent.as_ref())
            .with_some("q", filter.query.as_ref())
            .with_some("limit", filter.limit)
            .with_some("cursor", filter.cursor.as_ref());
        for state in &filter.states {
            endpoint = endpoint.with("state", state.word());
        }
        self.0.get(endpoint).await
    }

    /// The one task that an id or a unique prefix names.
    pub async fn resolve(&self, named: &TaskRef) -> Answer<TaskRef> {
        let found: ResolvedView = self.0.get(Endpoint::from("tasks/resolve").with("ref", named)).await?;
        Ok(found.task)
    }

    pub async fn task(&self, task: &TaskRef) -> Answer<TaskDetail> {
        self.0.get(Endpoint::task(task, "")).await
    }

    pub async fn export(&self, task: &TaskRef, format: ExportFormat) -> Answer<ExportView> {
        self.0.get(Endpoint::task(task, "export").with("format", format.word())).await
    }

    pub async fn delete_task(&self, task: &TaskRef) -> Answer<()> {
        self.0.delete(Endpoint::task(task, "")).await
    }

    pub async fn pin(&self, task: &TaskRef, request: PinRequest) -> Answer<TaskSummary> {
        self.0.put(Endpoint::task(task, "pin"), &request).await
    }

    pub async fn archive(&self, task: &TaskRef, request: ArchiveRequest) -> Answer<TaskSummary> {
        self.0.put(Endpoint::task(task, "archive"), &request).await
    }

    pub async fn mute(&self, task: &TaskRef, request: MuteRequest) -> Answer<TaskSummary> {
        self.0.put(Endpoint::task(task, "mute"), &request).await
    }

    pub async fn set_note(&self, task: &TaskRef, text: &str) -> Answer<TaskSummary> {
        self.0.put(Endpoint::task(task, "note"), &NoteRequest { text: text.to_owned() }).await
    }

    pub async fn snooze(&self, task: &TaskRef, request: SnoozeRequest) -> Answer<TaskSummary> {
        self.0.post(Endpoint::task(task, "snooze"), &request).await
    }

    /// Puts a task off no longer.
    pub async fn wake(&self, task: &TaskRef) -> Answer<TaskSummary> {
        self.0.delete_for(Endpoint::task(task, "snooze")).await
    }

    pub async fn views(&self, screen: Option<Screen>) -> Answer<Page<SavedView>> {
        self.0.get(Endpoint::from("views").with_some("screen", screen.map(Screen::word))).await
    }

    pub async fn save_view(&self, screen: Screen, name: &str, query: &str) -> Answer<SavedView> {
        self.0.put(Endpoint::view(screen, name), &SaveViewRequest { query: query.to_owned() }).await
    }

    pub async fn delete_view(&self, screen: Screen, name: &str) -> Answer<()> {
        self.0.delete(Endpoint::view(screen, name)).await
    }

    /// Errors: `outcome_unknown` where the reply left and no answer came; it is not to be sent again unseen.
    pub async fn reply(&self, task: &TaskRef, text: &str) -> Answer<TaskSummary> {
        self.0.post(Endpoint::task(task, "reply"), &ReplyRequest { text: text.to_owned() }).await
    }

    /// Returns when the task has ended, or after 30 s.
    pub async fn cancel(&self, task: &TaskRef) -> Answer<TaskSummary> {
        self.0.post(Endpoint::task(task, "cancel"), &serde_json::json!({})).await
    }

    pub async fn reconcile(&self, request: &ReconcileRequest) -> Answer<Page<ReconcileItem>> {
        self.0.post("reconcile", request).await
    }

    pub async fn report_card(&self, name: &AgentName) -> Answer<ReportCardView> {
        self.0.get(Endpoint::agent(name, "report")).await
    }

    pub async fn inbox(&self, filter: &ClaimFilter) -> Answer<Page<CallbackView>> {
        let mut endpoint = Endpoint::from("inbox")
            .with_some("agent", filter.agent.as_ref())
            .with_some("task", filter.task.as_ref())
            .with_some("q", filter.query.as_ref())
            .with_some("limit", filter.limit)
            .with_some("cursor", filter.cursor.as_ref());
        for verdict in &filter.verdicts {
            endpoint = endpoint.with("verdict", verdict.word());
        }
        self.0.get(endpoint).await
    }

    pub async fn callback(&self, id: &str) -> Answer<CallbackDetail> {
        self.0.get(Endpoint::inbox(id, "")).await
    }

    /// Holds a callback against its task as it is now; changes nothing.
    pub async fn replay(&self, id: &str) -> Answer<ReplayView> {
        self.0.post(Endpoint::inbox(id, "replay"), &serde_json::json!({})).await
    }

    pub async fn test_inbox(&self) -> Answer<Page<InboxTestView>> {
        self.0.post("inbox/test", &serde_json::json!({})).await
    }

    pub async fn settings(&self) -> Answer<Page<SettingView>> {
        self.0.get("settings").await
    }

    pub async fn notices(&self) -> Answer<Page<NoticeView>> {
        self.0.get("notices").await
    }

    /// Whether notices are held up now.
    pub async fn quiet(&self) -> Answer<QuietView> {
        self.0.get("quiet").await
    }

    pub async fn ask_for_quiet(&self, request: &QuietRequest) -> Answer<QuietView> {
        self.0.put("quiet", request).await
    }

    pub async fn end_quiet(&self) -> Answer<QuietView> {
        self.0.delete("quiet").await?;
        self.quiet().await
    }

    pub async fn test_notice(&self) -> Answer<NoticeView> {
        self.0.post("notices/test", &serde_json::json!({})).await
    }

    pub async fn clients(&self) -> Answer<Page<ClientView>> {
        self.0.get("clients").await
    }

    /// The answer holds the key, this once.
    pub async fn add_client(&self, name: &ClientName) -> Answer<NewClientView> {
        self.0.post("clients", &NewClientRequest { name: name.clone() }).await
    }

    pub async fn revoke_client(&self, name: &ClientName) -> Answer<()> {
        self.0.delete(Endpoint::client(name)).await
    }

    pub async fn targets(&self) -> Answer<Page<TargetView>> {
        self.0.get("targets").await
    }

    pub async fn allow_target(&self, request: &AllowTargetRequest) -> Answer<TargetView> {
        self.0.post("targets", request).await
    }

    pub async fn remove_target(&self, id: u64) -> Answer<()> {
        self.0.delete(Endpoint::new(&format!("targets/{id}"))).await
    }

    /// `pause` or `resume`.
    pub async fn change_target(&self, id: u64, change: &str) -> Answer<TargetView> {
        self.0.post(Endpoint::new(&format!("targets/{id}/{change}")), &serde_json::json!({})).await
    }

    pub async fn deliveries(&self, endpoint: &Endpoint) -> Answer<Page<DeliveryView>> {
        self.0.get(endpoint.clone()).await
    }

    pub async fn delivery(&self, id: u64) -> Answer<DeliveryView> {
        self.0.get(Endpoint::new(&format!("deliveries/{id}"))).await
    }

    pub async fn retry_delivery(&self, id: u64) -> Answer<DeliveryView> {
        self.0.post(Endpoint::new(&format!("deliveries/{id}/retry")), &serde_json::json!({})).await
    }

    pub async fn registrations(&self) -> Answer<RegistrationsView> {
        self.0.get("registrations").await
    }

    pub async fn registrations_of(&self, task: &TaskRef) -> Answer<RegistrationsView> {
        self.0.get(Endpoint::task(task, "registrations")).await
    }

    pub async fn register_push(&self, task: &TaskRef, request: &RegisterRequest) -> Answer<RegistrationView> {
        self.0.post(Endpoint::task(task, "registrations"), request).await
    }

    pub async fn rotate_push(&self, task: &TaskRef) -> Answer<RegistrationView> {
        self.0.post(Endpoint::task(task, "registrations/rotate"), &serde_json::json!({})).await
    }

    pub async fn remove_push(&self, task: &TaskRef) -> Answer<RegistrationsView> {
        self.0.delete_for(Endpoint::task(task, "registrations")).await
    }

    /// Waits for what came of it.
    pub async fn test_reachability(&self) -> Answer<ReachView> {
        self.0.post("reachability/test", &serde_json::json!({})).await
    }

    pub async fn setting(&self, key: &str) -> Answer<SettingView> {
        self.0.get(Endpoint::setting(key)).await
    }

    pub async fn set_setting(&self, key: &str, value: &str) -> Answer<SettingView> {
        self.0.put(Endpoint::setting(key), &SettingRequest { value: value.to_owned() }).await
    }

    pub async fn export_settings(&self) -> Answer<SettingsFile> {
        self.0.get("settings/export").await
    }

    pub async fn import_settings(&self, file: &SettingsFile, dry: bool) -> Answer<Page<SettingChange>> {
        self.0.post(Endpoint::from("settings/import").with("dry", dry), file).await
    }

    pub async fn diagnostics(&self) -> Answer<Page<DiagnosticsPart>> {
        self.0.get("diagnostics").await
    }

    /// Takes as long as the slowest part.
    pub async fn self_test(&self) -> Answer<Page<SelfTestItem>> {
        self.0.post("health/self-test", &serde_json::json!({})).await
    }

    pub async fn health(&self) -> Answer<HealthView> {
        self.0.get("health").await
    }

    pub async fn page_login(&self) -> Answer<PageLoginView> {
        self.0.post("page-login", &serde_json::json!({})).await
    }

    /// What changes of one task, from now on.
    pub fn changes(&self, task: &TaskRef) -> ChangeFeed {
        self.0.changes(None, Some(task.clone()))
    }
}
