//! Every noun over HTTP, through the client, against a real agent.

use std::time::Duration;

use serde_json::{Value, json};
use taskbell_core::credential::Secret;
use taskbell_core::ids::{AgentName, TaskRef};
use taskbell_demo_agent::{DemoAgent, Options};

use super::Served;
use crate::api::views::{
    AgentTestView, AgentView, ArchiveRequest, BlockView, ChangeView, CredentialRequest, FilePart,
    FollowRequest, FollowWish, FollowingMode, HealthView, ImportOutcome, NewAgentRequest, Page, PinRequest,
    ReconcileItem, ReconcileRequest, RenderedView, ReplyRequest, ResolvedView, RoleView, SecretText,
    SendOutcome, SendRequestView, SettingRequest, SettingView, ShownState, TaskDetail, TaskSummary,
    WatchRequest,
};
use crate::api_client::{ApiClient, Endpoint, FeedEvent};

const CANARY: &str = "canary-agent-secret-0b7e";

struct World {
    served: Served,
    client: ApiClient,
    agent: DemoAgent,
    name: AgentName,
}

impl World {
    async fn start(options: Options) -> Self {
        let agent = taskbell_demo_agent::start(options).await.unwrap();
        let served = Served::start().await;
        let client = ApiClient::connect(&served.dir()).await.unwrap();
        Self { served, client, agent, name: AgentName::new("demo").unwrap() }
    }

    async fn add(&self, credential: Option<CredentialRequest>) -> AgentView {
        let request = NewAgentRequest {
            url: self.agent.base_url().to_owned(),
            name: self.name.clone(),
            use_card_url: false,
            allow_http: false,
            credential,
        };
        self.client.post("agents", &request).await.unwrap()
    }

    async fn send(&self, text: &str) -> SendOutcome {
        let request =
            SendRequestView { text: text.into(), context_id: None, data: None, files: vec![], push: None };
        self.client.post(Endpoint::agent(&self.name, "send"), &request).await.unwrap()
    }

    async fn send_task(&self, text: &str) -> TaskRef {
        match self.send(text).await {
            SendOutcome::Task(sent) => sent.task,
            other => panic!("a task was due: {other:?}"),
        }
    }

    async fn wait_for(&self, task: &TaskRef, state: ShownState) -> TaskDetail {
        let waiting = async {
            let mut feed = self.client.changes(None, Some(task.clone()));
            feed.open().await.unwrap();
            loop {
                let detail: TaskDetail = self.client.get(Endpoint::task(task, "")).await.unwrap();
                if detail.summary.state == state {
                    return detail;
                }
                feed.next().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the state in time")
    }

    async fn error(&self, start: &str, body: &str) -> (u16, String) {
        let answer = self.served.call(start, body).await;
        (answer.status, answer.code())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_sent_asked_answered_and_shown_whole() {
    let world = World::start(Options::default()).await;
    let added = world.add(None).await;
    assert_eq!((added.name.as_str(), added.credential), ("demo", None));
    let task = world.send_task("steps=2 interval=0.05 ask=1").await;
    let waiting = world.wait_for(&task, ShownState::InputRequired).await;
    assert!(waiting.summary.needs_you && waiting.summary.question.is_some(), "{waiting:?}");

    let needing: Page<TaskSummary> =
        world.client.get(Endpoint::from("tasks").with("needsYou", true).with("agent", "demo")).await.unwrap();
    assert_eq!(needing.items.iter().map(|item| &item.task).collect::<Vec<_>>(), [&task]);

    let prefix: String = task.to_string().chars().take(12).collect();
    let resolved: ResolvedView =
        world.client.get(Endpoint::from("tasks/resolve").with("ref", &prefix)).await.unwrap();
    assert_eq!(resolved.task, task);

    let reply = ReplyRequest { text: "go on".into() };
    let answered: TaskSummary = world.client.post(Endpoint::task(&task, "reply"), &reply).await.unwrap();
    assert!(answered.replied_at.is_some() && !answered.needs_you);
    let done = world.wait_for(&task, ShownState::Completed).await;
    assert!(!done.artifacts.is_empty() && !done.artifacts[0].text.is_empty());
    assert!(done.summary.last_confirmed.is_some());

    let rendered: RenderedView = world.client.get(Endpoint::task(&task, "rendered")).await.unwrap();
    assert!(matches!(rendered.artifacts[0].blocks[0], BlockView::Paragraph { .. }), "{rendered:?}");
    let roles: Vec<RoleView> = rendered.conversation.iter().map(|message| message.role).collect();
    assert!(roles.contains(&RoleView::User) && roles.contains(&RoleView::Agent), "{rendered:?}");

    let mut seen: Vec<ChangeView> = Vec::new();
    let mut after = 0;
    loop {
        let page = Endpoint::task(&task, "changes").with("after", after).with("limit", 2);
        let page: Page<ChangeView> = world.client.get(page).await.unwrap();
        assert!((1..=2).contains(&page.items.len()), "no page is empty: {page:?}");
        seen.extend(page.items);
        let Some(next) = page.next else { break };
        after = next.parse().unwrap();
    }
    assert!(seen.len() > 2 && seen.is_sorted_by_key(|change| change.seq), "{seen:?}");
    assert!(seen.iter().all(|change| change.task.as_ref() == Some(&task)));
    let mut feed = world.client.changes(Some(0), Some(task.clone()));
    for listed in &seen {
        assert_eq!(feed.next().await.unwrap(), FeedEvent::Change(listed.clone()), "feed and list agree");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_pinned_archived_paused_reconciled_cancelled_and_forgotten() {
    let world = World::start(Options::default()).await;
    world.add(None).await;
    let task = world.send_task("steps=1000 interval=0.5").await;
    world.wait_for(&task, ShownState::Working).await;
    let client = &world.client;
    let pinned: TaskSummary =
        client.put(Endpoint::task(&task, "pin"), &PinRequest { pinned: true }).await.unwrap();
    assert!(pinned.pinned);
    let unpinned: TaskSummary =
        client.put(Endpoint::task(&task, "pin"), &PinRequest { pinned: false }).await.unwrap();
    assert!(!unpinned.pinned);
    let archived: TaskSummary =
        client.put(Endpoint::task(&task, "archive"), &ArchiveRequest { archived: true }).await.unwrap();
    assert!(archived.archived);
    let paused = FollowRequest { following: FollowWish::Paused };
    let paused: TaskSummary = client.put(Endpoint::task(&task, "follow"), &paused).await.unwrap();
    assert_eq!(paused.following.mode, FollowingMode::Paused);
    let on = FollowRequest { following: FollowWish::On };
    let _: TaskSummary = client.put(Endpoint::task(&task, "follow"), &on).await.unwrap();

    let one = ReconcileRequest { tasks: vec![task.clone()], ..ReconcileRequest::default() };
    let found: Page<ReconcileItem> = client.post("reconcile", &one).await.unwrap();
    assert_eq!((found.items.len(), found.items[0].after), (1, ShownState::Working));
    for bad in [json!({}), json!({"all": true, "sinceMs": 1})] {
        let error = client.post::<Value>("reconcile", &bad).await.unwrap_err();
        assert_eq!((error.code.as_str(), error.exit_code()), ("bad_request", 2));
    }

    let cancelled: TaskSummary = client.post(Endpoint::task(&task, "cancel"), &json!({})).await.unwrap();
    assert_eq!(cancelled.state, ShownState::Canceled);
    client.delete(Endpoint::task(&task, "")).await.unwrap();
    let gone = client.get::<TaskDetail>(Endpoint::task(&task, "")).await.unwrap_err();
    assert_eq!((gone.code.as_str(), gone.status, gone.exit_code()), ("unknown_task", Some(404), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_files_and_data_go_out_and_a_plain_answer_comes_back() {
    let world = World::start(Options::default()).await;
    world.add(None).await;
    let answer = world.send("reply=message say=hello").await;
    assert!(matches!(&answer, SendOutcome::Message { message } if message.to_string().contains("hello")));
    let large = "QUJD".repeat(1_000_000);
    let file = |base64: &str| FilePart {
        filename: "a.bin".into(),
        media_type: "application/octet-stream".into(),
        base64: base64.into(),
    };
    let mut request = SendRequestView {
        text: "reply=message".into(),
        context_id: None,
        data: Some(json!({"n": 1})),
        files: vec![file("QUJD")],
        push: None,
    };
    let send = || Endpoint::agent(&world.name, "send");
    let _: SendOutcome = world.client.post(send(), &request).await.unwrap();
    request.files = vec![file("not base64")];
    let error = world.client.post::<Value>(send(), &request).await.unwrap_err();
    assert_eq!(error.code, "bad_request");
    // Over the limit of other requests, under that of a send: it is read, and refused for its padding only.
    request.files = vec![file(&format!("{large}x"))];
    let error = world.client.post::<Value>(send(), &request).await.unwrap_err();
    assert_eq!(error.code, "bad_request", "{error:?}");
    request.files = vec![file(&large.repeat(7))];
    let error = world.client.post::<Value>(send(), &request).await.unwrap_err();
    assert!(matches!(error.code.as_str(), "too_large" | "engine_unreachable"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_tested_pinned_watched_imported_and_removed() {
    let world = World::start(Options::default()).await;
    world.add(None).await;
    let client = &world.client;
    let again = json!({"url": world.agent.base_url(), "name": "demo"}).to_string();
    assert_eq!(world.error("POST /api/v1/agents", &again).await, (409, "exists".into()));
    let test: AgentTestView = client.post(Endpoint::agent(&world.name, "test"), &json!({})).await.unwrap();
    assert!(test.reachable && test.card.is_some());
    let pinned: AgentView =
        client.put(Endpoint::agent(&world.name, "dialect"), &json!({"dialect": "0.3"})).await.unwrap();
    assert_eq!(pinned.pinned_dialect.map(|dialect| dialect.version()), Some("0.3"));
    let bad = world.error("PUT /api/v1/agents/demo/dialect", r#"{"dialect":"2.0"}"#).await;
    assert_eq!(bad, (400, "bad_request".into()));
    let _: AgentView =
        client.put(Endpoint::agent(&world.name, "dialect"), &json!({"dialect": null})).await.unwrap();

    let task = world.send_task("steps=1000 interval=0.5").await;
    let watch = WatchRequest { task_id: task.task.clone() };
    let watched: TaskSummary = client.post(Endpoint::agent(&world.name, "watch"), &watch).await.unwrap();
    assert_eq!(watched.task, task);
    client.delete(Endpoint::task(&task, "")).await.unwrap();
    let imported: ImportOutcome =
        client.post(Endpoint::agent(&world.name, "import"), &json!({})).await.unwrap();
    assert_eq!(imported.adopted, [task]);

    let all: Page<AgentView> = client.get("agents").await.unwrap();
    assert_eq!(all.items.len(), 1);
    client.delete(Endpoint::agent(&world.name, "")).await.unwrap();
    assert_eq!(world.error("GET /api/v1/agents/demo", "").await, (404, "unknown_agent".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_gone_is_the_answer_of_a_test_and_the_failure_of_a_send() {
    let world = World::start(Options::default()).await;
    world.add(None).await;
    let World { served, client, agent, name } = world;
    agent.stop().await.unwrap();
    let test: AgentTestView = client.post(Endpoint::agent(&name, "test"), &json!({})).await.unwrap();
    assert!(!test.reachable && !test.notes.is_empty());
    let answer = served.call("POST /api/v1/agents/demo/send", r#"{"text":"x"}"#).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "agent_unreachable"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_goes_in_and_never_comes_out() {
    let options = Options { tokens: vec![Secret::new(CANARY)], ..Options::default() };
    let world = World::start(options).await;
    let bearer = |token: &str| CredentialRequest::Bearer { token: SecretText::new(token) };
    let added = world.add(Some(bearer(CANARY))).await;
    assert!(added.credential.is_some());
    world.send_task("steps=1 interval=0.05").await;
    for path in ["agents", "agents/demo", "tasks", "settings", "health", "openapi.json"] {
        let answer = world.served.call(&format!("GET /api/v1/{path}"), "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains(CANARY), "{path} tells the credential");
    }
    // A wrong shape, an impossible value and a wrong token: none is quoted.
    for body in [
        format!(r#"{{"kind":"bearer","token":{{"{CANARY}":1}}}}"#),
        format!(r#"{{"kind":"headers","headers":{{"host":"{CANARY}"}}}}"#),
        format!(r#"{{"kind":"bearer","token":"{CANARY}\nx"}}"#),
    ] {
        let answer = world.served.call("PUT /api/v1/agents/demo/credential", &body).await;
        assert_eq!((answer.status, answer.body.contains(CANARY)), (400, false), "{}", answer.body);
    }
    let wrong: AgentView =
        world.client.put(Endpoint::agent(&world.name, "credential"), &bearer("canary-wrong")).await.unwrap();
    assert!(wrong.credential.is_some());
    let answer = world.served.call("POST /api/v1/agents/demo/send", r#"{"text":"x"}"#).await;
    assert_eq!(answer.status, 502, "the agent's 401 is not this API's: {}", answer.body);
    assert!(!answer.body.contains("canary"), "{}", answer.body);
    for entry in std::fs::read_dir(world.served.folder.path()).unwrap().flatten() {
        let octets = std::fs::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&octets);
        assert!(!text.contains(CANARY) && !text.contains("canary-wrong"), "{:?}", entry.path());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_listed_set_refused_and_unset() {
    let world = World::start(Options::default()).await;
    let client = &world.client;
    let all: Page<SettingView> = client.get("settings").await.unwrap();
    assert!(all.items.iter().any(|setting| setting.key == "retention.days"));
    let wish = SettingRequest { value: "7".into() };
    let set: SettingView = client.put(Endpoint::setting("retention.days"), &wish).await.unwrap();
    assert_eq!((set.value.as_str(), set.default.as_str()), ("7", "30"));
    let bad = world.error("PUT /api/v1/settings/retention.days", r#"{"value":"never"}"#).await;
    assert_eq!(bad, (400, "usage".into()));
    assert_eq!(world.error("GET /api/v1/settings/no.such", "").await, (404, "unknown_setting".into()));
    client.delete(Endpoint::setting("retention.days")).await.unwrap();
    let back: SettingView = client.get(Endpoint::setting("retention.days")).await.unwrap();
    assert_eq!(back.value, "30");
    let health: HealthView = client.get("health").await.unwrap();
    assert!(health.items.iter().any(|item| item.component == "store"));
}

#[tokio::test]
async fn misspelt_filters_and_paths_are_refused_and_not_ignored() {
    let world = World::start(Options::default()).await;
    for query in
        ["opne=true", "state=done", "limit=x", "open=maybe", "agent=Not%20A%20Name", "agent=a&agent=b"]
    {
        let error = world.error(&format!("GET /api/v1/tasks?{query}"), "").await;
        assert_eq!(error, (400, "bad_request".into()), "{query}");
    }
    for path in ["tasks/Bad%20Name/x", "agents/%FF", "tasks/demo/%FF", "agents/.."] {
        let (status, _) = world.error(&format!("GET /api/v1/{path}"), "").await;
        assert!(matches!(status, 400 | 404), "{path}: {status}");
    }
}

#[tokio::test]
async fn a_tunnel_to_the_wrong_port_is_named_in_health() {
    let world = World::start(Options::default()).await;
    let component =
        |health: &HealthView| health.items.iter().find(|item| item.component == "gateway host").cloned();
    let health: HealthView = world.client.get("health").await.unwrap();
    assert_eq!(component(&health), None);
    let answer = world.served.ask("POST /a2a/callbacks/x", &["Host: canary.tunnel.example"], "{}").await;
    assert_eq!((answer.status, answer.code().as_str()), (421, "wrong_host"));
    let health: HealthView = world.client.get("health").await.unwrap();
    let item = component(&health).expect("the mistake is named");
    assert_eq!(item.state, crate::api::views::HealthState::Warn);
    assert!(item.fix.as_deref().is_some_and(|fix| fix.contains("inbox")), "{item:?}");
    assert!(!format!("{item:?}").contains("canary"), "a stranger's text is not shown");
}
