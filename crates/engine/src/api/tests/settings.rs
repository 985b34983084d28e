//! Settings over HTTP: what each takes, and the file they are kept in.

use serde_json::{Value, json};

use super::Served;

async fn set(served: &Served, key: &str, value: &str) {
    let body = json!({ "value": value }).to_string();
    let answer = served.call(&format!("PUT /api/v1/settings/{key}"), &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn each_setting_says_what_it_takes_and_takes_it() {
    let served = Served::start().await;
    let settings = served.call("GET /api/v1/settings", "").await.json();
    for setting in settings["items"].as_array().unwrap() {
        assert!(setting["group"].is_string() && setting["restart"].is_boolean(), "{setting}");
        let kind = &setting["kind"];
        let good: Vec<String> = match kind["type"].as_str().unwrap() {
            "words" => kind["words"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap().to_owned())
                .collect(),
            "number" => vec![kind["least"].to_string(), kind["most"].to_string()],
            "text" => vec![String::new()],
            other => panic!("{other}"),
        };
        for value in good {
            // 3650.0 days are whole days as well.
            let value = value.strip_suffix(".0").unwrap_or(&value);
            set(&served, setting["key"].as_str().unwrap(), value).await;
        }
    }
}

#[tokio::test]
async fn an_export_holds_what_was_changed_and_no_command_line_and_comes_back_whole() {
    let served = Served::start().await;
    set(&served, "retention.days", "60").await;
    set(&served, "follow.silence", "50").await;
    set(&served, "tunnel.command", "").await;
    let body = json!({ "value": "tunnel --token canary-7c1d" }).to_string();
    let tunnel = served.call("PUT /api/v1/settings/tunnel.command", &body).await;
    assert_eq!(tunnel.status, 200, "{tunnel:?}");
    let file = served.call("GET /api/v1/settings/export", "").await.json();
    assert_eq!(
        file,
        json!({
            "taskbellSettings": 1,
            "settings": { "retention.days": "60", "follow.silence": "50" },
            "leftOut": ["tunnel.command"],
        })
    );

    let other = Served::start().await;
    let value = async |served: &Served, key: &str| -> Value {
        served.call(&format!("GET /api/v1/settings/{key}"), "").await.json()["value"].clone()
    };
    let import = async |start: &str, body: &Value| other.call(start, &body.to_string()).await;
    let dry = import("POST /api/v1/settings/import?dry=true", &file).await.json();
    let expected = json!([
        { "key": "follow.silence", "before": "45", "after": "50" },
        { "key": "retention.days", "before": "30", "after": "60" },
    ]);
    assert_eq!(dry["items"], expected);
    assert_eq!(value(&other, "retention.days").await, "30", "nothing was set yet");
    let done = import("POST /api/v1/settings/import", &file).await.json();
    assert_eq!(done["items"], expected);
    assert_eq!(value(&other, "retention.days").await, "60");
    assert_eq!(
        other.state.engine.parts().times().silence,
        std::time::Duration::from_secs(50),
        "it holds at once"
    );
    let again = import("POST /api/v1/settings/import", &file).await.json();
    assert_eq!(again["items"], json!([]), "there is nothing left to change");
}

#[tokio::test]
async fn a_file_with_one_wrong_line_changes_nothing_and_the_line_is_named() {
    let served = Served::start().await;
    for (settings, named) in [
        (json!({ "retention.days": "60", "retention.weeks": "2" }), "retention.weeks"),
        (json!({ "retention.days": "60", "follow.silence": "never" }), "follow.silence"),
        (json!({ "retention.days": "60", "push.nobody": "off" }), "push.nobody"),
    ] {
        let body = json!({ "taskbellSettings": 1, "settings": settings }).to_string();
        let answer = served.call("POST /api/v1/settings/import", &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "usage"), "{settings}");
        assert!(answer.body.contains(named), "{answer:?}");
        let kept = served.call("GET /api/v1/settings/retention.days", "").await.json();
        assert_eq!(kept["value"], "30", "all or nothing");
    }
    let newer = json!({ "taskbellSettings": 2, "settings": {} }).to_string();
    let answer = served.call("POST /api/v1/settings/import", &newer).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "usage"));
}
