//! `taskbell://task/AGENT/TASKID`: shows a task. Pure. Any web page can write such a link, so it names a task and
//! nothing else: no query, no other word, nothing that would be done.

use taskbell_core::ids::{AgentName, TaskId, TaskRef};

const SCHEME: &str = "taskbell://";
/// Octets. Longer ones are nobody's.
const LONGEST: usize = 4_096;

/// Why a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkRefused {
    #[error("it is not of the form taskbell://task/AGENT/TASKID")]
    Form,
    #[error("links only show tasks")]
    NotATask,
    #[error("it names no task that an agent could have")]
    Name,
}

/// The task that a link names.
pub fn parse(link: &str) -> Result<TaskRef, LinkRefused> {
    let scheme = link.get(..SCHEME.len()).ok_or(LinkRefused::Form)?;
    if link.len() > LONGEST || !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(LinkRefused::Form);
    }
    let mut parts = link.get(SCHEME.len()..).unwrap_or_default().split('/');
    match parts.next() {
        Some(word) if word.eq_ignore_ascii_case("task") => {}
        _ => return Err(LinkRefused::NotATask),
    }
    let (Some(agent), Some(id), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(LinkRefused::Form);
    };
    let agent = AgentName::new(agent).map_err(|_| LinkRefused::Name)?;
    let id = decoded(id).ok_or(LinkRefused::Name)?;
    if id.is_empty() || id == "." || id == ".." || id.chars().any(char::is_control) {
        return Err(LinkRefused::Name);
    }
    Ok(TaskRef { agent, task: TaskId::new(id) })
}

/// Percent-decoded. What an address has to escape is refused where it is not.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
                bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
            }
            b'?' | b'#' | b'\\' | b' ' => return None,
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The path of a task in the API.
pub fn api_path(task: &TaskRef) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let id: String = (task.task.as_str().bytes())
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    format!("/api/v1/tasks/{}/{id}", task.agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_an_agent_and_a_task() {
        for (link, task) in [
            ("taskbell://task/demo/t-7", "demo/t-7"),
            ("TASKBELL://task/demo/t-7", "demo/t-7"),
            ("taskbell://task/demo/a%2Fb%20c%C3%A9", "demo/a/b cé"),
        ] {
            assert_eq!(parse(link).map(|task| task.to_string()).as_deref(), Ok(task));
        }
        assert_eq!(api_path(&parse("taskbell://task/demo/a%2Fb%3F").unwrap()), "/api/v1/tasks/demo/a%2Fb%3F");
    }

    #[test]
    fn a_link_does_nothing_but_show_a_task() {
        use LinkRefused::{Form, Name, NotATask};
        for (link, refused) in [
            ("taskbell://add?url=https://evil.example.net&token=x", NotATask),
            ("taskbell://agents/demo/t-7", NotATask),
            ("taskbell://task@evil.example/demo/t-7", NotATask),
            ("a2a-companion://add?url=https://evil.example.net&token=x", Form),
            ("https://example.com/task/demo/t-7", Form),
            ("taskbell:task/demo/t-7", Form),
            ("", Form),
            ("é", Form),
            ("taskbell://task/demo", Form),
            ("taskbell://task/demo/t-7/cancel", Form),
            ("taskbell://task/../../x", Form),
            ("taskbell://task/demo/..", Name),
            ("taskbell://task/demo/%2e%2e", Name),
            ("taskbell://task/demo/", Name),
            ("taskbell://task/demo/t-7?run=1", Name),
            ("taskbell://task/demo/t-7#run", Name),
            ("taskbell://task/demo/t%00", Name),
            ("taskbell://task/demo/t%0a", Name),
            ("taskbell://task/demo/t%ff", Name),
            ("taskbell://task/demo/t%2", Name),
            ("taskbell://task/De mo/t", Name),
            ("taskbell://task/--help/t", Name),
        ] {
            assert_eq!(parse(link), Err(refused), "{link}");
        }
        assert_eq!(parse(&format!("taskbell://task/demo/{}", "a".repeat(LONGEST))), Err(Form));
    }
}
