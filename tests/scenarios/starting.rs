//! Starting the engine where it cannot start, and commands without one.

use std::net::TcpListener;

use taskbell_tests::Taskbell;

#[tokio::test(flavor = "multi_thread")]
async fn without_an_engine_commands_say_what_to_run() {
    let taskbell = Taskbell::without_engine();
    for arguments in [&["tasks"][..], &["agent", "list"], &["send", "a", "hello"], &["show", "a/t"]] {
        assert_eq!(taskbell.cli(arguments).await.error_code(1), "no_engine", "{arguments:?}");
        let said = taskbell.cli_text(arguments).await;
        said.is_one_line_of_error(1);
        assert!(said.stderr.contains("serve"), "it says what to run: {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_held_is_refused_and_its_holder_named() {
    let taskbell = Taskbell::start().await;
    let ports = ["--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0"];
    let output = taskbell.serve_again(&ports).await;
    assert_eq!(output.error_code(1), "data_dir_held");
    assert!(output.stdout.contains(&taskbell.ready().pid.to_string()), "the holder is named: {output:?}");
    // The first one is not disturbed.
    taskbell.cli(&["tasks"]).await.exits(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let taskbell = Taskbell::without_engine();
    let output = taskbell.serve_again(&["--gateway", &address]).await;
    assert_eq!(output.error_code(1), "port_taken");
    assert!(output.stdout.contains(&address), "the port is named: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_place_of_the_folder_is_refused_with_its_path() {
    let taskbell = Taskbell::without_engine();
    let file = taskbell.data_dir().join("file");
    std::fs::write(&file, "not a folder").expect("a file");
    let path = file.display().to_string();
    let output = taskbell
        .serve_again(&["--gateway", "127.0.0.1:0", "--inbox", "127.0.0.1:0", "--data-dir", &path])
        .await;
    assert_eq!(output.error_code(1), "data_dir_not_a_folder");
    assert!(output.stdout.contains(&path), "{output:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "not a folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_none_is_moved_aside_and_never_deleted() {
    let mut taskbell = Taskbell::start().await;
    let folder = taskbell.data_dir();
    taskbell.stop().await;
    let database = std::fs::read_dir(&folder)
        .expect("a folder")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "db" || end == "sqlite" || end == "sqlite3"))
        .expect("a database");
    std::fs::write(&database, "this was a database once").expect("a file");
    taskbell.come_up().await;
    taskbell.cli(&["tasks"]).await.exits(0);
    let kept = walk(&folder)
        .into_iter()
        .any(|path| std::fs::read(&path).is_ok_and(|octets| octets.starts_with(b"this was a database once")));
    assert!(kept, "the damaged file is somewhere in {}", folder.display());
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries =
        std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok).map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_an_engine_are_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let taskbell = Taskbell::start().await;
    for path in walk(&taskbell.data_dir()) {
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{} can be read by others", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_quick_with_a_hundred_streams_open() {
    let gateway = taskbell_tests::GatewayA::start(crate::TOKEN).await;
    let mut taskbell = Taskbell::start().await;
    taskbell.add_agent_with_token("a", &gateway.url(), crate::TOKEN).await;
    let sender = taskbell_tests::a2a::Direct::new(
        &format!("{}a2a/coder", gateway.url()),
        taskbell_tests::a2a::Dialect::V03,
    )
    .with_token(crate::TOKEN);
    for turn in 0..100 {
        let id = sender.send(&format!("turn {turn}")).await;
        taskbell.cli(&["watch", "a", &id]).await.exits(0);
    }
    taskbell_tests::eventually(crate::PATIENCE, "all are attached", || gateway.open_streams() == 100).await;
    taskbell.stop().await;
}
