//! The forms that scripts rely on.

use taskbell_tests::{GatewayA, Taskbell, a2a::http};

use crate::TOKEN;

async fn scene() -> (GatewayA, Taskbell) {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    (gateway, taskbell)
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_items_and_filters_filter() {
    let (gateway, taskbell) = scene().await;
    let open = taskbell.send("a", "one").await;
    let done = taskbell.send("a", "two").await;
    gateway.finish(done.id(), "done");
    taskbell.wait(&done).await.exits(0);
    let names = async |arguments: &[&str]| -> Vec<String> {
        let items = taskbell.cli(arguments).await.items();
        let mut names: Vec<String> =
            items.iter().filter_map(|item| item["task"].as_str().map(str::to_owned)).collect();
        names.sort();
        names
    };
    let mut both = vec![open.as_str().to_owned(), done.as_str().to_owned()];
    both.sort();
    assert_eq!(names(&["tasks"]).await, both);
    assert_eq!(names(&["tasks", "--open"]).await, [open.as_str()]);
    assert_eq!(names(&["tasks", "--state", "completed"]).await, [done.as_str()]);
    assert_eq!(names(&["tasks", "--agent", "a"]).await, both);
    let agents = taskbell.cli(&["agent", "list"]).await.items();
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0]["name"], "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_has_the_members_that_are_promised() {
    let (gateway, taskbell) = scene().await;
    let task = taskbell.send("a", "one").await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    let shown = taskbell.show(&task).await.0;
    for member in [
        "task",
        "state",
        "rawState",
        "following",
        "lastConfirmed",
        "artifacts",
        "timeline",
        "callbacks",
        "registrations",
    ] {
        assert!(shown.get(member).is_some(), "no {member}: {shown}");
    }
    assert_eq!(shown["task"], task.as_str());
    assert!(
        shown["following"].get("since").is_some() && shown["following"].get("attempt").is_some(),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reconcile_says_what_no_channel_had_shown() {
    let (gateway, taskbell) = scene().await;
    let task = taskbell.send("a", "one").await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    let answer = taskbell.cli(&["reconcile", task.as_str()]).await;
    answer.exits(0);
    let text = answer.stdout.clone();
    for member in ["task", "before", "after", "verdict", "missed"] {
        assert!(text.contains(&format!("\"{member}\"")), "no {member}: {text}");
    }
    assert!(
        text.contains("\"missed\":false") || text.contains("\"missed\": false"),
        "nothing was missed: {text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn loopback_is_no_boundary() {
    let (_gateway, taskbell) = scene().await;
    let base = &taskbell.ready().gateway;
    let client = http();
    for path in ["/api/v1/tasks", "/api/v1/agents", "/api/v1/changes"] {
        let answer = client.get(format!("{base}{path}")).send().await.expect("an answer");
        assert!(answer.status().is_client_error(), "{path} without a token: {}", answer.status());
        assert!(!answer.headers().contains_key("access-control-allow-origin"), "{path}");
    }
    let answer = client.get(format!("{base}/api/v1/tasks")).header("Host", "evil.example.net").send().await;
    assert_eq!(answer.expect("an answer").status(), 421, "another host's name is not ours");
    let answer = client
        .get(format!("{base}/api/v1/hello?c=abc"))
        .header("Origin", "http://localhost:3000")
        .send()
        .await;
    assert_eq!(answer.expect("an answer").status(), 403, "another page's origin is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_leaves_as_a_document_an_archive_and_the_files_it_made() {
    let (gateway, taskbell) = scene().await;
    let task = taskbell.send("a", "a report").await;
    gateway.finish(task.id(), "the report");
    taskbell.wait(&task).await.exits(0);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let document = taskbell.cli_text(&["export", task.as_str(), "--format", "markdown"]).await;
    assert!(document.exits(0).stdout.contains("the report"), "{document:?}");
    let (archive, files) = (at("report.zip"), at("files"));
    let export = ["export", task.as_str(), "--format", "zip", "-o", &archive, "--artifacts", &files];
    let written = taskbell.cli(&export).await.ok();
    assert_eq!(written["files"].as_array().map(Vec::len), Some(2), "{written}");
    assert!(std::fs::read(&archive).expect("an archive").starts_with(b"PK"));
    let made = written["files"][1].as_str().expect("a path");
    assert_eq!(std::fs::read_to_string(made).expect("a file"), "the report");
    let again = taskbell.cli(&["export", task.as_str(), "-o", &archive]).await;
    assert_eq!(again.error_code(1), "not_written", "a file that is there is not touched");
}
