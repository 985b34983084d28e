//! What people get wrong: one line of error, the right exit code, never a panic.

use taskbell_tests::{
    FaultProxy, GatewayA, Taskbell,
    odd_servers::{Monotone, SelfSigned},
    ports::free_port,
};

use crate::TOKEN;

/// Asserts both forms of the same failure and returns the code.
async fn fails(taskbell: &Taskbell, arguments: &[&str], exit: i32) -> String {
    taskbell.cli_text(arguments).await.is_one_line_of_error(exit);
    taskbell.cli(arguments).await.error_code(exit)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_agent_is_named() {
    let taskbell = Taskbell::start().await;
    assert_eq!(fails(&taskbell, &["send", "nobody", "hello"], 1).await, "unknown_agent");
    assert_eq!(fails(&taskbell, &["agent", "show", "nobody"], 1).await, "unknown_agent");
    assert_eq!(fails(&taskbell, &["watch", "nobody", "t-1"], 1).await, "unknown_agent");
    let said = taskbell.cli_text(&["send", "nobody", "hello"]).await;
    assert!(said.stderr.contains("nobody"), "the error names what was not found: {said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_task_is_named() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    for command in ["show", "follow", "wait", "cancel"] {
        assert_eq!(fails(&taskbell, &[command, "a/no-such-task"], 1).await, "unknown_task", "{command}");
    }
    assert_eq!(fails(&taskbell, &["reply", "a/no-such-task", "yes"], 1).await, "unknown_task");
    // The agent has no such task either.
    let code = fails(&taskbell, &["watch", "a", "no-such-task"], 1).await;
    assert_eq!(code, "unknown_task");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_prefix_is_enough_and_an_ambiguous_one_is_refused() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let mut names = Vec::new();
    // Seventeen ids of hexadecimal digits share a first digit somewhere.
    for turn in 0..17 {
        names.push(taskbell.send("a", &format!("turn {turn}")).await);
    }
    let mut digits: Vec<char> = names.iter().flat_map(|name| name.id().chars().next()).collect();
    digits.sort_unstable();
    let digit = digits.windows(2).find(|two| two[0] == two[1]).expect("a shared first digit")[0];
    assert_eq!(fails(&taskbell, &["show", &format!("a/{digit}")], 1).await, "ambiguous_task");
    let prefix: String = names[0].id().chars().take(13).collect();
    let shown = taskbell.cli(&["show", &format!("a/{prefix}")]).await.ok();
    assert_eq!(shown["task"], names[0].as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_are_no_command_are_usage() {
    let taskbell = Taskbell::without_engine();
    for arguments in [
        &["sned", "a", "hello"][..],
        &["send"],
        &["wait", "a/t", "--until", "friday"],
        &["show", "a/t", "--colour"],
    ] {
        let output = taskbell.cli_text(arguments).await;
        output.exits(2);
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
        let code = taskbell.cli(arguments).await.error_code(2);
        assert_eq!(code, "usage");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_none_is_refused_before_anything_is_asked() {
    let taskbell = Taskbell::start().await;
    for url in
        ["", "agent", "ftp://127.0.0.1/", "http://", "https://user:secret@agent.example.com/", "http://[::1"]
    {
        let output = taskbell.cli(&["agent", "add", url, "--name", "x"]).await;
        assert!(matches!(output.code, Some(1 | 2)), "{url}: {output:?}");
        assert!(!output.stderr.contains("panicked"), "{url}: {output:?}");
        assert!(!output.stdout.contains("secret") && !output.stderr.contains("secret"), "{url}: {output:?}");
        assert!(output.json()["error"]["code"].is_string(), "{url}: {output:?}");
    }
    assert!(taskbell.cli(&["agent", "list"]).await.items().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_to_another_machine_needs_to_be_allowed() {
    let taskbell = Taskbell::start().await;
    // A documentation address: nothing is sent to it.
    fails(&taskbell, &["agent", "add", "http://192.0.2.1/", "--name", "x"], 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_page_is_not_an_agent() {
    let page = Monotone::html().await;
    let taskbell = Taskbell::start().await;
    let code = fails(&taskbell, &["agent", "add", &page.url(), "--name", "x"], 1).await;
    assert_eq!(code, "upstream_not_a2a");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_that_is_no_card_is_not_an_agent() {
    let taskbell = Taskbell::start().await;
    for body in ["{}", "[]", "null", "\"card\"", "{\"name\":", "{\"name\":\"x\",\"url\":7}"] {
        let server = Monotone::start(200, "application/json", body).await;
        let code = taskbell.cli(&["agent", "add", &server.url(), "--name", "x"]).await.error_code(1);
        assert_eq!(code, "upstream_not_a2a", "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_listen_is_unreachable() {
    let taskbell = Taskbell::start().await;
    let url = format!("http://127.0.0.1:{}/", free_port());
    let code = fails(&taskbell, &["agent", "add", &url, "--name", "x"], 1).await;
    assert_eq!(code, "agent_unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_is_refused() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let output = taskbell.cli(&["agent", "add", &gateway.url(), "--name", "a"]).await;
    output.error_code(1);
    assert_eq!(taskbell.cli(&["agent", "list"]).await.items().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_unauthorized_and_a_refused_one_forbidden() {
    let gateway = GatewayA::start(TOKEN).await;
    let proxy = FaultProxy::before(gateway.port()).await;
    let taskbell = Taskbell::start().await;
    let arguments = ["agent", "add", &proxy.url(), "--name", "a", "--token-env", "TEST_AGENT_TOKEN"];
    // Whether adding tells already is not promised; sending does.
    taskbell.cli_env(&arguments, &[("TEST_AGENT_TOKEN", "wrong")]).await;
    if taskbell.cli(&["agent", "list"]).await.items().is_empty() {
        taskbell.add_agent_with_token("a", &proxy.url(), TOKEN).await;
        gateway.expire(TOKEN);
    }
    assert_eq!(fails(&taskbell, &["send", "a", "hello"], 1).await, "unauthorized");
    proxy.set(taskbell_tests::When::Calls, taskbell_tests::Fault::answer(403, "application/json", "{}"));
    assert_eq!(fails(&taskbell, &["send", "a", "hello"], 1).await, "forbidden");
    assert!(gateway.messages().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = SelfSigned::start().await;
    let taskbell = Taskbell::start().await;
    let code = fails(&taskbell, &["agent", "add", &server.url(), "--name", "x"], 1).await;
    assert!(code.starts_with("tls_"), "{code}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_variable_that_is_not_set_is_named() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    let arguments =
        ["agent", "add", &gateway.url(), "--name", "a", "--token-env", "TEST_TOKEN_THAT_IS_NOT_SET"];
    let output = taskbell.cli_text(&arguments).await;
    assert!(matches!(output.code, Some(1 | 2)), "{output:?}");
    assert!(output.stderr.contains("TEST_TOKEN_THAT_IS_NOT_SET"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_task_that_has_ended_is_refused() {
    let gateway = GatewayA::start(TOKEN).await;
    let taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), TOKEN).await;
    let task = taskbell.send("a", "a turn").await;
    gateway.finish(task.id(), "done");
    taskbell.wait(&task).await.exits(0);
    fails(&taskbell, &["reply", task.as_str(), "more"], 1).await;
    assert_eq!(taskbell.show(&task).await.state(), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_setting_is_refused() {
    let taskbell = Taskbell::start().await;
    fails(&taskbell, &["settings", "set", "no.such.setting", "1"], 1).await;
    fails(&taskbell, &["settings", "set", "retention.days", "soon"], 2).await;
}
