//! How a push config is written to an agent, with its secrets: the one place that does.
//!
//! 0.3: one object that holds the nested form and the flat one, since the SDKs want the first and a gateway
//! in the field documents the second under the same method; both families ignore what they do not know.
//! 1.0: the flat form and nothing else, because its servers refuse members that the proto does not name.

use serde_json::{Map, Value, json};

use super::v1::put_some;
use crate::ids::TaskId;
use crate::push_config::PushConfig;

/// Parameters of `tasks/pushNotificationConfig/set`.
pub(super) fn set_v03(task_id: &TaskId, config: &PushConfig) -> Map<String, Value> {
    let scheme = config.authentication.as_ref().map(|authentication| capitalised(&authentication.scheme));
    let mut nested = fields(config);
    let mut flat = fields(config);
    if let (Some(authentication), Some(scheme)) = (&config.authentication, scheme) {
        let credentials = authentication.credentials.as_ref().map(|secret| secret.expose());
        let mut inner = Map::new();
        inner.insert("scheme".into(), json!(scheme));
        put_some(&mut inner, "credentials", credentials.as_ref());
        flat.insert("authentication".into(), Value::Object(inner.clone()));
        inner.insert("schemes".into(), json!([scheme]));
        nested.insert("authentication".into(), Value::Object(inner));
    }
    flat.insert("taskId".into(), json!(task_id));
    flat.insert("pushNotificationConfig".into(), Value::Object(nested));
    flat
}

/// Parameters of `CreateTaskPushNotificationConfig`, and the body of its REST route: the task stands in the
/// body too, where one SDK looks for it.
pub(super) fn create_v1(task_id: &TaskId, config: &PushConfig) -> Map<String, Value> {
    let mut params = fields(config);
    params.insert("taskId".into(), json!(task_id));
    if let Some(authentication) = &config.authentication {
        let mut inner = Map::new();
        // Lower case: one SDK sends no header for any other spelling, the rest fold or copy it.
        inner.insert("scheme".into(), json!(authentication.scheme.to_ascii_lowercase()));
        put_some(
            &mut inner,
            "credentials",
            authentication.credentials.as_ref().map(|secret| secret.expose()).as_ref(),
        );
        params.insert("authentication".into(), Value::Object(inner));
    }
    params
}

fn fields(config: &PushConfig) -> Map<String, Value> {
    let mut map = Map::new();
    put_some(&mut map, "id", config.id.as_ref());
    map.insert("url".into(), json!(config.url));
    put_some(&mut map, "token", config.notification_token.as_ref().map(|secret| secret.expose()).as_ref());
    map
}

fn capitalised(scheme: &str) -> String {
    let mut letters = scheme.to_ascii_lowercase().into_bytes();
    if let Some(first) = letters.first_mut() {
        first.make_ascii_uppercase();
    }
    String::from_utf8(letters).unwrap_or_else(|_| scheme.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::Secret;
    use crate::dialect::Dialect;
    use crate::dialect::call::{Call, Verb};
    use crate::push_config::{self, PushAuthentication};

    fn config() -> PushConfig {
        PushConfig {
            id: Some("p-1".into()),
            url: "https://h.example/x".into(),
            notification_token: Some(Secret::new("tok")),
            authentication: Some(PushAuthentication {
                scheme: "Bearer".into(),
                credentials: Some(Secret::new("sec")),
            }),
            metadata: Map::new(),
        }
    }

    fn create() -> Call {
        Call::CreatePushConfig { task_id: TaskId::new("t-1"), config: config() }
    }

    #[test]
    fn the_0_3_request_holds_the_nested_form_and_the_flat_one() {
        let (method, params) = create().json_rpc(Dialect::V03, None).unwrap();
        assert_eq!(method, "tasks/pushNotificationConfig/set");
        assert_eq!(
            params,
            json!({"taskId":"t-1","id":"p-1","url":"https://h.example/x","token":"tok",
                "authentication":{"scheme":"Bearer","credentials":"sec"},
                "pushNotificationConfig":{"id":"p-1","url":"https://h.example/x","token":"tok",
                    "authentication":{"schemes":["Bearer"],"scheme":"Bearer","credentials":"sec"}}})
        );
    }

    #[test]
    fn the_1_0_request_is_flat_and_holds_nothing_that_the_proto_does_not_name() {
        let (method, params) = create().json_rpc(Dialect::V1, None).unwrap();
        assert_eq!(method, "CreateTaskPushNotificationConfig");
        assert_eq!(
            params,
            json!({"taskId":"t-1","id":"p-1","url":"https://h.example/x","token":"tok",
                "authentication":{"scheme":"bearer","credentials":"sec"}})
        );
        assert_eq!(create().rest().body, Some(params));
    }

    #[test]
    fn a_config_without_secrets_is_written_without_their_members() {
        let bare = PushConfig { notification_token: None, authentication: None, ..config() };
        assert_eq!(
            Value::Object(create_v1(&TaskId::new("t"), &bare)),
            json!({"taskId":"t","id":"p-1","url":"https://h.example/x"})
        );
    }

    #[test]
    fn the_other_three_are_named_by_the_task_and_the_config() {
        let (task_id, config_id) = (TaskId::new("t-1"), "p-1".to_owned());
        let get = Call::GetPushConfig { task_id: task_id.clone(), config_id: config_id.clone() };
        let list = Call::ListPushConfigs { task_id: task_id.clone(), page_token: None };
        let delete = Call::DeletePushConfig { task_id, config_id };
        let written = |call: &Call, dialect| call.json_rpc(dialect, None).unwrap();
        assert_eq!(
            written(&get, Dialect::V03),
            ("tasks/pushNotificationConfig/get", json!({"id":"t-1","pushNotificationConfigId":"p-1"}))
        );
        assert_eq!(
            written(&get, Dialect::V1),
            ("GetTaskPushNotificationConfig", json!({"taskId":"t-1","id":"p-1"}))
        );
        assert_eq!(written(&list, Dialect::V03), ("tasks/pushNotificationConfig/list", json!({"id":"t-1"})));
        assert_eq!(written(&list, Dialect::V1), ("ListTaskPushNotificationConfigs", json!({"taskId":"t-1"})));
        assert_eq!(
            written(&delete, Dialect::V03),
            ("tasks/pushNotificationConfig/delete", json!({"id":"t-1","pushNotificationConfigId":"p-1"}))
        );
        assert_eq!(
            written(&delete, Dialect::V1),
            ("DeleteTaskPushNotificationConfig", json!({"taskId":"t-1","id":"p-1"}))
        );
        assert_eq!(
            (list.rest().verb, list.rest().path.as_str()),
            (Verb::Get, "/tasks/t-1/pushNotificationConfigs")
        );
        let rest = delete.rest();
        assert_eq!((rest.verb, rest.path.as_str()), (Verb::Delete, "/tasks/t-1/pushNotificationConfigs/p-1"));
    }

    #[test]
    fn what_is_written_is_what_a_server_of_ours_reads() {
        for dialect in [Dialect::V03, Dialect::V1] {
            let read = push_config::params(create().json_rpc(dialect, None).unwrap().1).unwrap();
            assert_eq!(read.task_id, Some(TaskId::new("t-1")));
            assert_eq!(read.config.id.as_deref(), Some("p-1"));
            assert_eq!(read.config.notification_token.as_ref().map(Secret::expose), Some("tok"));
        }
    }
}
