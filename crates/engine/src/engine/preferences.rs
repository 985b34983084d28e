//! Settings: reading and changing them, one at a time or as a file.

use super::Engine;
use crate::api::views::{SettingChange, SettingView, SettingsFile};
use crate::error::EngineError;
use crate::reachability::AddressSource;
use crate::settings;
use crate::store::{StoreError, WriteContext, changes, settings as rows};

/// The form of settings in a file.
const FILE_VERSION: u32 = 1;

impl Engine {
    pub async fn settings(&self) -> Result<Vec<SettingView>, EngineError> {
        let views = self.store().read(|connection| {
            settings::all(connection)?.iter().map(|found| view(connection, found)).collect::<Result<_, _>>()
        });
        Ok(views.await?)
    }

    pub async fn setting(&self, key: &str) -> Result<SettingView, EngineError> {
        let found = self.find_setting(key)?;
        Ok(self.store().read(move |connection| view(connection, &found)).await?)
    }

    pub async fn set_setting(&self, key: &str, value: &str) -> Result<SettingView, EngineError> {
        let found = self.find_setting(key)?;
        found.setting.check(value)?;
        let value = value.to_owned();
        let set = move |context: &mut WriteContext<'_>| {
            rows::set(context, &found.key, &value)?;
            announce(context, &found.key)
        };
        self.store().write(set).await?;
        self.take_settings().await?;
        self.setting(key).await
    }

    pub async fn unset_setting(&self, key: &str) -> Result<SettingView, EngineError> {
        let found = self.find_setting(key)?;
        let clear = move |context: &mut WriteContext<'_>| {
            rows::clear(context, &found.key)?;
            announce(context, &found.key)
        };
        self.store().write(clear).await?;
        self.take_settings().await?;
        self.setting(key).await
    }

    /// What its user changed, without what may hold a secret.
    pub async fn export_settings(&self) -> Result<SettingsFile, EngineError> {
        let set = self.store().read(rows::list).await?;
        let mut file = SettingsFile {
            taskbell_settings: FILE_VERSION,
            settings: std::collections::BTreeMap::new(),
            left_out: Vec::new(),
        };
        for (key, value) in set {
            // The table holds more than settings; what is none is not for a file.
            match self.find_setting(&key) {
                Ok(found) if found.setting.may_hold_a_secret() => file.left_out.push(key),
                Ok(_) => {
                    file.settings.insert(key, value);
                }
                Err(_) => (),
            }
        }
        Ok(file)
    }

    /// What the file changes, all or nothing; those it does not name stay. `dry`: only said.
    pub async fn import_settings(
        &self,
        file: SettingsFile,
        dry: bool,
    ) -> Result<Vec<SettingChange>, EngineError> {
        if file.taskbell_settings != FILE_VERSION {
            let message = format!(
                "the file has version {} and this program reads version {FILE_VERSION}",
                file.taskbell_settings
            );
            return Err(EngineError::new("usage", message));
        }
        let mut wanted = Vec::new();
        let mut refused = Vec::new();
        for (key, value) in file.settings {
            match self.find_setting(&key).and_then(|found| found.setting.check(&value).map(|()| found)) {
                Ok(found) => wanted.push((found, value)),
                Err(error) if error.code == "usage" => refused.push(error.message),
                Err(error) if error.code == "unknown_agent" => {
                    refused.push(format!("{key}: {}", error.message))
                }
                Err(_) => refused.push(format!("there is no setting {key:?}")),
            }
        }
        if !refused.is_empty() {
            let message = format!("nothing was changed: {}", refused.join("; "));
            return Err(EngineError::new("usage", message));
        }
        let changes = self
            .store()
            .read(move |connection| {
                let mut changes = Vec::new();
                for (found, after) in wanted {
                    let before = found.value(connection)?;
                    if before != after {
                        changes.push(SettingChange { key: found.key, before, after });
                    }
                }
                Ok(changes)
            })
            .await?;
        if !dry && !changes.is_empty() {
            let written = changes.clone();
            self.store()
                .write(move |context| {
                    written.iter().try_for_each(|change| {
                        rows::set(context, &change.key, &change.after)?;
                        announce(context, &change.key)
                    })
                })
                .await?;
            self.take_settings().await?;
        }
        Ok(changes)
    }

    fn find_setting(&self, key: &str) -> Result<settings::Found, EngineError> {
        let found = settings::find(key)?;
        match found.agent() {
            Some(name) if self.agents_at_hand().by_name(&name).is_none() => {
                Err(EngineError::unknown_agent(name))
            }
            Some(_) | None => Ok(found),
        }
    }

    pub(super) async fn take_settings(&self) -> Result<(), EngineError> {
        self.0.parts.set_times(self.store().read(settings::follow_times).await?);
        let public_url = self.store().read(settings::public_url).await?;
        self.0.parts.reach().set_source(AddressSource::Setting, public_url);
        crate::logs::set_level(&self.store().read(settings::log_level).await?);
        self.0.parts.bells().tunnel.notify_one();
        self.0.parts.bells().registrations.notify_one();
        self.0.notifier.look_again();
        Ok(())
    }
}

/// Whoever goes by a setting reads it again. The change names it alone: values are nobody else's.
fn announce(context: &mut WriteContext<'_>, key: &str) -> Result<(), StoreError> {
    let body_json = serde_json::json!({ "key": key }).to_string();
    let change = changes::NewChange {
        agent: None,
        task: None,
        source: "manual",
        kind: "setting",
        body_json: &body_json,
    };
    changes::record_change(context, &change).map(|_| ())
}

fn view(connection: &rusqlite::Connection, found: &settings::Found) -> Result<SettingView, StoreError> {
    Ok(SettingView {
        key: found.key.clone(),
        group: found.setting.group().to_owned(),
        value: found.value(connection)?,
        default: found.setting.default.to_owned(),
        meaning: found.setting.meaning.to_owned(),
        kind: found.setting.takes(),
        restart: false,
    })
}
