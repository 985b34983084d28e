//! Finding tasks again, and what their user keeps of them.

use serde_json::Value;
use taskbell_tests::{GatewayA, Taskbell, taskbell::TaskName, wait_until};

use crate::{PATIENCE, TOKEN};

async fn scene() -> (GatewayA, Taskbell) {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    (gateway, taskbell)
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["task"].as_str()).collect()
}

/// Waits until a query finds exactly these, in any order.
async fn finds(taskbell: &Taskbell, query: &[&str], wanted: &[&TaskName]) {
    let arguments = [&["tasks"], query].concat();
    let mut wanted: Vec<&str> = wanted.iter().map(|task| task.as_str()).collect();
    wanted.sort_unstable();
    wait_until(PATIENCE, &format!("{query:?} finds {wanted:?}"), async || {
        let items = taskbell.cli(&arguments).await.items();
        let mut found = names(&items);
        found.sort_unstable();
        (found == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_found_by_what_was_asked_and_answered_also_after_a_crash() {
    let (gateway, mut taskbell) = scene().await;
    let one = taskbell.send("a", "count the whales").await;
    let two = taskbell.send("a", "count the ravens").await;
    gateway.finish(one.id(), "there are seventeen");
    taskbell.wait(&one).await.exits(0);
    finds(&taskbell, &["whal"], &[&one]).await;
    finds(&taskbell, &["count", "the"], &[&one, &two]).await;
    finds(&taskbell, &["count -whales"], &[&two]).await;
    finds(&taskbell, &["\"the ravens\"", "is:open"], &[&two]).await;
    finds(&taskbell, &["count", "state:completed"], &[&one]).await;
    gateway.ask(two.id(), "which forest?");
    finds(&taskbell, &["forest", "is:waiting"], &[&two]).await;
    taskbell.crash_and_restart().await;
    finds(&taskbell, &["ravens"], &[&two]).await;
    let hit = &taskbell.cli(&["tasks", "forest"]).await.items()[0]["hit"];
    assert_eq!(hit["place"], "question", "{hit}");
    let marked: Vec<&Value> =
        hit["parts"].as_array().unwrap().iter().filter(|part| part["hit"] == true).collect();
    assert_eq!(marked.len(), 1, "{hit}");
    assert_eq!(marked[0]["text"], "forest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_cannot_be_meant_is_told_and_finds_nothing_silently() {
    let (_gateway, taskbell) = scene().await;
    for query in ["colour:red", "state:done", "\"open", "agent:nobody", "is:", "since:soon", "&&"] {
        assert_eq!(taskbell.cli(&["tasks", query]).await.error_code(2), "bad_query", "{query}");
        taskbell.cli_text(&["tasks", query]).await.is_one_line_of_error(2);
    }
    assert_eq!(taskbell.cli(&["inbox", "list", "via:poll"]).await.error_code(2), "bad_query");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_and_notes_are_kept_told_and_undone() {
    let (gateway, taskbell) = scene().await;
    let task = taskbell.send("a", "one").await;
    let name = task.as_str();
    for (flag, word) in [("pin", "pinned"), ("mute", "muted"), ("archive", "archived")] {
        assert_eq!(taskbell.cli(&["task", flag, name]).await.ok()[word], true);
        finds(&taskbell, &[&format!("is:{word}")], &[&task]).await;
        assert_eq!(taskbell.cli(&["task", flag, name, "--off"]).await.ok()[word], false);
        finds(&taskbell, &[&format!("is:{word}")], &[]).await;
    }
    assert_eq!(
        taskbell.cli(&["task", "note", name, "ask Ada about the zeppelin"]).await.ok()["hasNote"],
        true
    );
    // Found at once: it is the user's own doing.
    assert_eq!(names(&taskbell.cli(&["tasks", "zeppelin"]).await.items()), [name]);
    assert_eq!(taskbell.cli(&["task", "note", name]).await.ok()["note"], "ask Ada about the zeppelin");
    taskbell.cli(&["task", "note", name, "--off"]).await.exits(0);
    assert_eq!(taskbell.cli(&["task", "note", name]).await.ok()["note"], Value::Null);
    finds(&taskbell, &["zeppelin"], &[]).await;
    let long = "x".repeat(10_001);
    assert_eq!(taskbell.cli(&["task", "note", name, &long]).await.error_code(2), "note_too_long");

    assert_eq!(taskbell.cli(&["task", "snooze", name]).await.error_code(1), "not_waiting");
    gateway.ask(task.id(), "which?");
    finds(&taskbell, &["is:waiting"], &[&task]).await;
    let snoozed = taskbell.cli(&["task", "snooze", name, "--for", "2h"]).await.ok();
    assert_eq!(snoozed["needsYou"], false, "{snoozed}");
    finds(&taskbell, &["is:snoozed"], &[&task]).await;
    assert_eq!(taskbell.cli(&["tasks", "--needs-you"]).await.items().len(), 0);
    assert_eq!(taskbell.cli(&["task", "snooze", name, "--off"]).await.ok()["needsYou"], true);
    taskbell.cli(&["task", "snooze", name, "--until", "2020-01-01T00:00:00Z"]).await.exits(2);
    let timeline = taskbell.cli(&["show", name]).await.stdout;
    for told in
        ["\"pinned\":false", "\"muted\":true", "\"note\":true", "\"snoozed\":true", "\"snoozed\":false"]
    {
        assert!(timeline.replace(": ", ":").contains(told), "{told} is not in the timeline: {timeline}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_saved_listed_used_and_deleted() {
    let (_gateway, mut taskbell) = scene().await;
    let task = taskbell.send("a", "count the whales").await;
    taskbell.send("a", "something else").await;
    taskbell.cli(&["view", "save", "My whales", "whales is:open"]).await.exits(0);
    taskbell.stop().await;
    taskbell.come_up().await;
    let views = taskbell.cli(&["view", "list", "--screen", "tasks"]).await.items();
    let mine: Vec<&Value> = views.iter().filter(|view| view["builtIn"] == false).collect();
    assert_eq!(mine.len(), 1, "{views:?}");
    assert_eq!((&mine[0]["name"], &mine[0]["query"]), (&"My whales".into(), &"whales is:open".into()));
    for view in &views {
        taskbell.cli(&["tasks", "--view", view["name"].as_str().unwrap()]).await.exits(0);
    }
    finds(&taskbell, &["--view", "my WHALES"], &[&task]).await;
    assert_eq!(taskbell.cli(&["view", "save", "open", "x"]).await.error_code(1), "view_built_in");
    assert_eq!(taskbell.cli(&["view", "save", "bad", "colour:red"]).await.error_code(2), "bad_query");
    taskbell.cli(&["view", "delete", "MY whales"]).await.exits(0);
    assert_eq!(taskbell.cli(&["view", "delete", "My whales"]).await.error_code(1), "unknown_view");
    taskbell.cli(&["inbox", "list", "--view", "Today"]).await.exits(0);
}
