//! Notification services that refuse, or answer what nobody can read: small real ones on a bus of their own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use taskbell_engine::running::RunningEngine;
use zbus::fdo;
use zbus::zvariant::OwnedValue;

use super::session::{PATH, SERVICE, Session, World, until};

/// Refuses as it is told, else shows.
#[derive(Clone, Default)]
struct Service {
    refusal: Arc<Mutex<Option<fdo::Error>>>,
    asked: Arc<AtomicU32>,
}

impl Service {
    fn refuse(&self, error: Option<fdo::Error>) {
        *self.refusal.lock().unwrap() = error;
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Service {
    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".to_owned(), "actions".to_owned()]
    }

    #[allow(clippy::too_many_arguments, reason = "the specification's")]
    fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        _summary: String,
        _body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> fdo::Result<u32> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        match &*self.refusal.lock().unwrap() {
            Some(error) => Err(error.clone()),
            None => Ok(number),
        }
    }

    fn close_notification(&self, _id: u32) {}
}

/// Speaks another language under the same name.
struct Babble;

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Babble {
    fn get_capabilities(&self) -> u32 {
        7
    }

    #[allow(clippy::too_many_arguments, reason = "the specification's")]
    fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        _summary: String,
        _body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> String {
        "shown".to_owned()
    }
}

/// On the bus until it is dropped.
async fn put_up<S: zbus::object_server::Interface>(session: &Session, service: S) -> zbus::Connection {
    let builder = zbus::connection::Builder::address(session.address.as_str()).unwrap();
    builder.name(SERVICE).unwrap().serve_at(PATH, service).unwrap().build().await.unwrap()
}

/// Outcome and detail of a test notice.
async fn told(running: &RunningEngine) -> (String, String) {
    let notice = running.engine().test_notice().await.unwrap();
    (notice.outcome.unwrap(), notice.detail.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_refuses_is_quoted_and_costs_its_notice_alone() {
    let Some(session) = Session::start() else { return };
    let service = Service::default();
    let _bus = put_up(&session, service.clone()).await;
    let world = World::start(&session.address).await;
    service.refuse(Some(fdo::Error::LimitsExceeded("too many\u{1b}[2J notices".to_owned())));
    let task = world.send("steps=3 interval=0.05 ask=1").await;
    world.until_outcomes(&[("waiting", "failed")]).await;
    let detail = world.notices().await.remove(0).detail.unwrap();
    assert_eq!(detail, "the notification service refused: too many notices");
    assert_eq!(service.asked(), 1, "it is not asked again and again for what it refused");

    // The task goes on, and a service that thinks better of it is used again.
    world.running.engine().reply(&task, "yes".to_owned()).await.unwrap();
    service.refuse(None);
    until("the end", async || world.outcomes().await.len() == 2).await;
    assert_eq!(told(&world.running).await.0, "shown");
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_let_us_is_another_outcome_than_one_that_fails() {
    let Some(session) = Session::start() else { return };
    let service = Service::default();
    let _bus = put_up(&session, service.clone()).await;
    let world = World::start(&session.address).await;
    service.refuse(Some(fdo::Error::AccessDenied("notices are switched off".to_owned())));
    let (outcome, detail) = told(&world.running).await;
    assert_eq!(outcome, "not-permitted");
    assert_eq!(detail, "the notification service does not let us: notices are switched off");
    world.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_whose_answers_nobody_can_read_is_one_that_refused() {
    let Some(session) = Session::start() else { return };
    let _bus = put_up(&session, Babble).await;
    let world = World::start(&session.address).await;
    let (outcome, detail) = told(&world.running).await;
    assert_eq!(outcome, "failed");
    assert!(detail.starts_with("the notification service refused: "), "{detail}");
    world.running.stop().await;
}
