use taskbell_tests::session::Session;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_a_keyring_that_can_be_locked_and_restarted() {
    if !Session::is_possible() {
        println!("skipped: this machine has no dbus-daemon, dbus-send or gnome-keyring-daemon");
        return;
    }
    let mut session = Session::start().await;
    assert!(!session.is_locked().await, "it starts unlocked");
    session.lock().await;
    session.kill_keyring().await;
    session.restart_keyring().await;
    assert!(!session.is_locked().await, "a restarted keyring is unlocked with the same password");
}
