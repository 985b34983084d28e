//! What must be true whatever happened: no end lost, none told twice, final states final, nothing sent twice, and no
//! more memory or descriptors than before.

use std::collections::BTreeMap;

use serde_json::Value;
use taskbell_tests::taskbell::TaskName;

use crate::world::World;

/// What the engine may grow by between the third round of its life and any later one. Connections rest for a while
/// before they are closed, and what a proxy keeps silent stays open until it is given up, so their number swings.
const MEMORY_MORE_KIB: u64 = 48 * 1024;
const DESCRIPTORS_MORE: usize = 96;

pub async fn judge(world: &mut World, round: usize) {
    states(world, round).await;
    notices(world, round).await;
    final_states_stay(world, round).await;
    for (agent, proxy) in &world.proxies {
        let twice: Vec<_> = proxy.sends().into_iter().filter(|(_, times)| *times > 1).collect();
        assert!(twice.is_empty(), "round {round}: {agent} got a message twice: {twice:?}");
    }
    let log = world.taskbell.log();
    assert!(!log.contains("panicked"), "round {round}: the engine panicked:\n{log}");
    measure(world, round);
}

async fn states(world: &World, round: usize) {
    let listed = all(world, "tasks").await;
    let shown: BTreeMap<String, &Value> =
        listed.iter().map(|item| (TaskName::of(&item["task"]).as_str().to_owned(), item)).collect();
    for (name, expected) in &world.expected {
        let Some(task) = shown.get(name) else { panic!("round {round}: {name} is gone") };
        let state = task["state"].as_str().unwrap_or_default();
        assert_eq!(Some(state), expected.end, "round {round}: {name}: {task}");
        // What older tasks came to was looked at in their own round.
        if expected.round == round {
            let shown = world.taskbell.show(&TaskName::of(&Value::String(name.clone()))).await;
            match (&expected.text, world.told(name).await) {
                (Some(text), _) => assert_eq!(shown.text(), *text, "round {round}: the answer of {name}"),
                (None, Some(told)) => {
                    assert_eq!(told.state, state, "round {round}: {name} as its agent says");
                    assert_eq!(shown.text(), told.text, "round {round}: the answer of {name}");
                }
                (None, None) => (),
            }
        }
    }
}

/// One notice for each end, and none too many for questions.
async fn notices(world: &World, round: usize) {
    let mut told: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for notice in all(world, "notices").await {
        let (Some(task), Some(kind)) = (notice["task"].as_str(), notice["kind"].as_str()) else { continue };
        *told.entry(task.to_owned()).or_default().entry(kind.to_owned()).or_default() += 1;
    }
    for (name, expected) in &world.expected {
        let kinds = told.get(name).cloned().unwrap_or_default();
        let of = |kind: &str| kinds.get(kind).copied().unwrap_or_default();
        let ends = of("finished") + of("failed");
        assert_eq!(ends, 1, "round {round}: the end of {name} is told once: {kinds:?}");
        let questions = of("waiting");
        if questions > expected.questions {
            let shown = world.taskbell.show(&TaskName::of(&Value::String(name.clone()))).await;
            println!("{:#}", shown.0["timeline"]);
        }
        assert!(
            questions <= expected.questions,
            "round {round}: {name} asked {} times: {kinds:?}",
            expected.questions
        );
    }
}

async fn final_states_stay(world: &World, round: usize) {
    // The tasks of this round only, or an hour would be spent reading old ones again.
    let read = world.taskbell.cli(&["reconcile", "--since", "2m"]).await.exits(0).json();
    let changed: Vec<&Value> = read["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item["before"] != item["after"])
        .collect();
    assert!(changed.is_empty(), "round {round}: a read after the end found something: {changed:?}");
}

/// All items of a list of the API, page by page.
async fn all(world: &World, list: &str) -> Vec<Value> {
    let run = std::fs::read(world.taskbell.data_dir().join("runtime.json")).expect("the engine runs");
    let run: Value = serde_json::from_slice(&run).expect("JSON");
    let (base, token) = (&world.taskbell.ready().gateway, run["token"].as_str().expect("a token"));
    let http = taskbell_tests::a2a::http();
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let url = format!("{base}/api/v1/{list}?limit=500{cursor}");
        let answer = http.get(&url).bearer_auth(token).send().await.expect("the engine answers");
        let page: Value = answer.json().await.expect("JSON");
        items.extend(page["items"].as_array().unwrap_or_else(|| panic!("{url}: {page}")).iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

fn measure(world: &mut World, round: usize) {
    let pid = world.taskbell.engine().pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the engine lives");
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let memory: u64 = memory
        .and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok())
        .expect("a process has memory");
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the engine lives").count();
    println!("round {round}: {memory} KiB, {descriptors} descriptors, {}", world.counts);
    world.measured.push((memory, descriptors));
    if let Some(&(then, open)) = world.measured.get(2) {
        assert!(memory < then + MEMORY_MORE_KIB, "round {round}: {then} KiB became {memory}");
        assert!(
            descriptors < open + DESCRIPTORS_MORE,
            "round {round}: {open} descriptors became {descriptors}"
        );
    }
}
