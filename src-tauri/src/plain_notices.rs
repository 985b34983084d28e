//! Notices as the plugin shows them: on macOS and Windows, and where nobody on D-Bus does.
//!
//! It tells no errors, so what is recorded of such a notice is that it was handed over.

use std::sync::OnceLock;

use taskbell_engine::notifier::{OtherWay, PlainNotice};
use tauri::{AppHandle, Wry};
use tauri_plugin_notification::{Action, ActionType, NotificationExt as _};

/// The buttons of a question.
const QUESTION: &str = "question";

/// The plugin's way, for the engine. What users press comes back to it.
pub fn by_plugin(app: AppHandle<Wry>) -> OtherWay {
    // Not before it is needed: on Linux the plugin opens a connection for it.
    let listening = OnceLock::new();
    OtherWay::new(move |notice, way| {
        listening.get_or_init(|| listen(&app, way.clone()));
        show(&app, notice).map_err(|error| error.to_string())
    })
}

fn listen(app: &AppHandle<Wry>, way: OtherWay) {
    let buttons = vec![Action::builder("open", "Open").build(), Action::builder("snooze", "Snooze").build()];
    let question = ActionType::builder(QUESTION).actions(buttons).build();
    let heard = app.notification().register_action_types(vec![question]).and_then(|()| {
        app.notification().on_action(move |performed| {
            let id = performed.notification().and_then(|notice| u32::try_from(notice.id()).ok());
            if let Some(id) = id {
                way.press(id, performed.action_id());
            }
        })
    });
    if let Err(error) = heard {
        tracing::warn!("clicks on notices are not heard: {error}");
    }
}

fn show(app: &AppHandle<Wry>, notice: PlainNotice) -> tauri_plugin_notification::Result<()> {
    let mut shown = app.notification().builder().title(notice.title).body(notice.body);
    if let Ok(id) = i32::try_from(notice.id) {
        shown = shown.id(id);
    }
    if notice.can_snooze {
        shown = shown.action_type_id(QUESTION);
    }
    shown.show()
}
