//! Notices over D-Bus as the Desktop Notifications Specification 1.2 has them.
//!
//! Our own connection, made at the first notice and again after each failure. No call waits longer than 2 s.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{Select, select};
use taskbell_core::notice::Urgency;
use zbus::zvariant::Value;
use zbus::{Connection, MatchRule, Message, MessageStream};

use super::desktop::{Bubble, ShowError, Signal};

const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const LIMIT: Duration = Duration::from_secs(2);
/// Signals kept until they are looked at; beyond, the oldest go.
const SIGNALS: usize = 256;

pub(super) struct Freedesktop {
    address: Option<String>,
    session: Option<Session>,
}

struct Session {
    connection: Connection,
    signals: Select<MessageStream, MessageStream>,
    /// Asked once; `None` before that and after another service has come.
    capabilities: Option<Vec<String>>,
}

impl Freedesktop {
    /// On the bus of that address, or on the session's.
    pub(super) fn new(address: Option<String>) -> Self {
        Self { address, session: None }
    }

    pub(super) async fn show(&mut self, bubble: &Bubble) -> Result<u32, ShowError> {
        match self.try_show(bubble).await {
            // The bus went and came: what was sent on the old connection was not shown.
            Err(Failure::Connection(_)) => {
                self.session = None;
                let again = self.try_show(bubble).await;
                if again.is_err() {
                    self.session = None;
                }
                again.map_err(Failure::into_error)
            }
            shown => shown.map_err(Failure::into_error),
        }
    }

    async fn try_show(&mut self, bubble: &Bubble) -> Result<u32, Failure> {
        let session = self.session().await?;
        let capabilities = session.capabilities().await?;
        let can = |what: &str| capabilities.iter().any(|name| name == what);
        let body = if can("body-markup") { escaped(&bubble.body) } else { bubble.body.clone() };
        let mut actions = Vec::new();
        if can("actions") {
            actions.extend(["default", "Open", "open", "Open"]);
            if bubble.can_snooze {
                actions.extend(["snooze", "Snooze"]);
            }
        }
        let urgency: u8 = match bubble.urgency {
            Urgency::Low => 0,
            Urgency::Normal => 1,
            Urgency::Critical => 2,
        };
        let mut hints: HashMap<&str, Value<'_>> = HashMap::from([
            ("urgency", Value::from(urgency)),
            ("desktop-entry", Value::from("taskbell")),
            ("x-dunst-stack-tag", Value::from(bubble.tag.as_str())),
        ]);
        if bubble.silent {
            hints.insert("suppress-sound", Value::from(true));
        } else if bubble.stays {
            hints.insert("sound-name", Value::from("message-new-instant"));
        }
        let timeout: i32 = if bubble.stays { 0 } else { -1 };
        let values = (
            "Taskbell",
            bubble.replaces.unwrap_or(0),
            "",
            bubble.title.as_str(),
            body.as_str(),
            actions,
            hints,
            timeout,
        );
        let answer = session.call("Notify", &values).await?;
        answer.body().deserialize().map_err(|error| Failure::Told(ShowError::Refused(error.to_string())))
    }

    pub(super) async fn close(&mut self, id: u32) {
        let Some(session) = &mut self.session else { return };
        if let Err(failure) = session.call("CloseNotification", &(id,)).await {
            tracing::debug!(error = %failure.into_error(), "a notice was not taken back");
        }
    }

    /// Never returns before something was shown: nothing is listened to until then.
    pub(super) async fn next_signal(&mut self) -> Signal {
        loop {
            let Some(session) = &mut self.session else { return std::future::pending().await };
            let Some(message) = session.signals.next().await else {
                self.session = None;
                return Signal::Restarted;
            };
            let signal = message.ok().as_ref().and_then(read_signal);
            if signal == Some(Signal::Restarted) {
                session.capabilities = None;
            }
            if let Some(signal) = signal {
                return signal;
            }
        }
    }

    async fn session(&mut self) -> Result<&mut Session, Failure> {
        if self.session.is_none() {
            let connecting = tokio::time::timeout(LIMIT, connect(self.address.as_deref()));
            let session =
                connecting.await.unwrap_or_else(|_elapsed| Err("the bus does not answer".to_owned()));
            self.session = Some(session.map_err(|error| Failure::Told(ShowError::NoDesktop(error)))?);
        }
        self.session.as_mut().ok_or_else(|| Failure::Told(ShowError::NoDesktop("no bus".to_owned())))
    }
}

async fn connect(address: Option<&str>) -> Result<Session, String> {
    let words = |error: zbus::Error| error.to_string();
    let builder = match address {
        Some(address) => zbus::connection::Builder::address(address),
        None => zbus::connection::Builder::session(),
    };
    let connection = builder.map_err(words)?.build().await.map_err(words)?;
    let theirs = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(SERVICE)
        .and_then(|rule| rule.interface(SERVICE))
        .map_err(words)?
        .build();
    let owner = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender("org.freedesktop.DBus")
        .and_then(|rule| rule.member("NameOwnerChanged"))
        .and_then(|rule| rule.add_arg(SERVICE))
        .map_err(words)?
        .build();
    let theirs = MessageStream::for_match_rule(theirs, &connection, Some(SIGNALS)).await.map_err(words)?;
    let owner = MessageStream::for_match_rule(owner, &connection, Some(SIGNALS)).await.map_err(words)?;
    Ok(Session { connection, signals: select(theirs, owner), capabilities: None })
}

impl Session {
    async fn capabilities(&mut self) -> Result<Vec<String>, Failure> {
        if self.capabilities.is_none() {
            let answer = self.call("GetCapabilities", &()).await?;
            // A service that tells nothing we can read can nothing.
            self.capabilities = Some(answer.body().deserialize().unwrap_or_default());
        }
        Ok(self.capabilities.clone().unwrap_or_default())
    }

    async fn call<B>(&self, method: &str, body: &B) -> Result<Message, Failure>
    where
        B: serde::Serialize + zbus::zvariant::DynamicType,
    {
        let call = self.connection.call_method(Some(SERVICE), PATH, Some(SERVICE), method, body);
        match tokio::time::timeout(LIMIT, call).await {
            Ok(answer) => answer.map_err(Failure::of),
            Err(_elapsed) => Err(Failure::Told(ShowError::Hung)),
        }
    }
}

enum Failure {
    /// Our connection is of no use any more.
    Connection(String),
    Told(ShowError),
}

impl Failure {
    fn of(error: zbus::Error) -> Self {
        let zbus::Error::MethodError(name, text, _) = &error else {
            return Self::Connection(error.to_string());
        };
        let said = || taskbell_core::text::plain(text.as_deref().unwrap_or(name.as_str()));
        Self::Told(match name.as_str() {
            "org.freedesktop.DBus.Error.ServiceUnknown" | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
                ShowError::Absent
            }
            "org.freedesktop.DBus.Error.NoReply" | "org.freedesktop.DBus.Error.TimedOut" => ShowError::Hung,
            "org.freedesktop.DBus.Error.AccessDenied" => ShowError::NotPermitted(said()),
            _ => ShowError::Refused(said()),
        })
    }

    fn into_error(self) -> ShowError {
        match self {
            Self::Connection(text) => ShowError::NoDesktop(text),
            Self::Told(error) => error,
        }
    }
}

fn read_signal(message: &Message) -> Option<Signal> {
    let header = message.header();
    let member = header.member()?.as_str();
    match member {
        "ActionInvoked" => {
            let (id, action): (u32, String) = message.body().deserialize().ok()?;
            Some(Signal::Action { id, action })
        }
        "NotificationClosed" => {
            let (id, _reason): (u32, u32) = message.body().deserialize().ok()?;
            Some(Signal::Closed { id })
        }
        "NameOwnerChanged" => {
            let (name, old, _new): (String, String, String) = message.body().deserialize().ok()?;
            // One that comes where there was none took nothing off the screen: our own call may have started it.
            (name == SERVICE && !old.is_empty()).then_some(Signal::Restarted)
        }
        _ => None,
    }
}

/// For services that read markup in the body (§ 1.2 "Markup").
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_looks_like_markup_is_shown_as_it_was_written() {
        assert_eq!(
            escaped("R&D <3 a<b> <a href=\"x\">sign in</a> &amp;"),
            "R&amp;D &lt;3 a&lt;b&gt; &lt;a href=\"x\"&gt;sign in&lt;/a&gt; &amp;amp;"
        );
    }
}
