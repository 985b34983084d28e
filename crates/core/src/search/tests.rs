use super::*;

fn tasks(text: &str) -> Query {
    Query::parse(text, Screen::Tasks).unwrap()
}

fn refusal(text: &str) -> String {
    Query::parse(text, Screen::Tasks).unwrap_err().to_string()
}

fn word(text: &str) -> Word {
    Word { text: text.to_owned(), begins: false }
}

fn beginning(text: &str) -> Word {
    Word { text: text.to_owned(), begins: true }
}

#[test]
fn an_empty_text_leaves_nothing_out() {
    assert_eq!(tasks(""), Query::default());
    assert_eq!(tasks("  \t "), Query::default());
    assert_eq!(tasks("").wanted(), None);
}

#[test]
fn words_must_all_be_there_and_the_last_may_be_unfinished() {
    let query = tasks("build rep");
    assert_eq!(query.words, [word("build"), beginning("rep")]);
    assert_eq!(query.wanted().as_deref(), Some(r#""build" AND "rep"*"#));
}

#[test]
fn a_phrase_and_a_filter_at_the_end_leave_no_word_unfinished() {
    assert_eq!(tasks(r#"build "nightly report""#).words, [word("build"), word("nightly report")]);
    assert_eq!(tasks("build state:failed").words, [word("build")]);
}

#[test]
fn a_beginning_of_one_letter_is_a_whole_word() {
    assert_eq!(tasks("a").wanted().as_deref(), Some(r#""a""#));
}

#[test]
fn every_key_is_read_whatever_its_case() {
    let query = tasks("State:FAILED agent:Builder via:push+poll verdict:ahead is:pinned since:7d");
    assert_eq!(query.states.any, [StateWord::State(TaskState::Failed)]);
    assert_eq!(query.agents.any, [AgentName::new("builder").unwrap()]);
    assert_eq!(query.via.any, [Via::PushAndPoll]);
    assert_eq!(query.verdicts.any, [Verdict::Ahead]);
    assert_eq!(query.is, [(Is::Pinned, true)]);
    assert_eq!(query.since_ms, Some(7 * 86_400_000));
    assert!(query.words.is_empty());
}

#[test]
fn values_by_commas_and_the_same_key_twice_mean_any_of_them() {
    let states = [StateWord::State(TaskState::Failed), StateWord::Lost];
    assert_eq!(tasks("state:failed,lost").states.any, states);
    assert_eq!(tasks("state:failed state:lost").states.any, states);
    assert_eq!(tasks("state:\"failed,lost\"").states.any, states);
    assert!(tasks("state:failed,lost").states.takes(&StateWord::Lost));
    assert!(!tasks("state:failed").states.takes(&StateWord::Lost));
}

#[test]
fn a_minus_leaves_out_words_phrases_and_values() {
    let query = tasks(r#"build -nightly -"dry run" -state:canceled -is:muted"#);
    assert_eq!(query.without, [word("nightly"), word("dry run")]);
    assert_eq!(query.states.none, [StateWord::State(TaskState::Canceled)]);
    assert_eq!(query.says_of(Is::Muted), Some(false));
    assert_eq!(query.wanted().as_deref(), Some(r#"("build") NOT ("nightly" OR "dry run")"#));
    assert_eq!(query.unwanted(), None);
}

#[test]
fn where_only_words_to_leave_out_are_given_they_are_asked_for_alone() {
    let query = tasks("-nightly");
    assert_eq!(query.wanted(), None);
    assert_eq!(query.unwanted().as_deref(), Some(r#""nightly""#));
}

#[test]
fn nothing_in_a_word_is_syntax_of_the_index() {
    for text in ["NEAR(a b)", "a* OR b", "title:x^2", "(a", "{a}", "a AND", "+-a", "a\0b", "NOT"] {
        let text = text.replace(':', ";");
        let wanted = tasks(&text).wanted().unwrap();
        let outside: String = wanted.split('"').step_by(2).collect();
        let outside = outside.replace(" AND ", "").replace('*', "");
        assert_eq!(outside, "", "{wanted}");
    }
    assert_eq!(words::all_of(&[word("a\"b")]).as_deref(), Some("\"a\"\"b\""));
}

#[test]
fn addresses_and_times_are_words_and_no_keys() {
    assert_eq!(tasks("http://127.0.0.1:9/x").words, [beginning("http://127.0.0.1:9/x")]);
    assert_eq!(tasks("12:30").words, [beginning("12:30")]);
}

#[test]
fn an_unknown_key_is_named_with_those_there_are() {
    let told = refusal("colour:red");
    assert!(told.contains("\"colour\"") && told.contains("state: agent: via:"), "{told}");
}

#[test]
fn an_unknown_value_is_named_with_those_there_are() {
    let told = refusal("state:done");
    assert!(told.contains("\"done\"") && told.contains("input-required") && told.contains("lost"), "{told}");
    assert!(refusal("state:failed,").contains("\"\" is no value of state"));
    assert!(refusal("is:big").contains("pinned"));
    assert!(refusal("agent:no_CAPS!").contains("agent"));
}

#[test]
fn a_key_without_a_value_says_which_there_are() {
    assert!(refusal("via:").contains("push+poll"));
    assert!(refusal("agent: x").contains("agent"));
}

#[test]
fn broken_quotes_are_told_wherever_they_are() {
    for text in ["\"abc", "abc\"", "state:\"failed", "a \"b\" \"c", "ab\"cd"] {
        assert_eq!(Query::parse(text, Screen::Tasks), Err(QueryError::OpenQuote), "{text}");
    }
    assert_eq!(Query::parse("\" \"", Screen::Tasks), Err(QueryError::EmptyPhrase));
}

#[test]
fn a_minus_alone_and_words_without_letters_are_told() {
    assert_eq!(Query::parse("a - b", Screen::Tasks), Err(QueryError::LoneMinus));
    assert!(refusal("&&").contains("no letter or digit"));
}

#[test]
fn a_time_is_a_length_of_at_most_a_year() {
    assert_eq!(tasks("since:30m").since_ms, Some(1_800_000));
    assert_eq!(tasks("since:2w").since_ms, Some(14 * 86_400_000));
    for text in ["since:0h", "since:-1h", "since:9999999d", "since:soon", "since:7", "-since:7d", "since:"] {
        assert_eq!(Query::parse(text, Screen::Tasks), Err(QueryError::NotASpan), "{text}");
    }
}

#[test]
fn the_inbox_has_keys_of_its_own() {
    let query = Query::parse("verdict:rejected is:open state:completed", Screen::Inbox).unwrap();
    assert_eq!(query.verdicts.any, [Verdict::Rejected]);
    assert!(Query::parse("via:poll", Screen::Inbox).is_err());
    assert!(Query::parse("is:pinned", Screen::Inbox).is_err());
    assert!(refusal("verdict:rejected").contains("unreachable"), "what was rejected is of no task");
}

#[test]
fn a_long_query_and_one_of_many_words_are_refused() {
    assert_eq!(Query::parse(&"x".repeat(QUERY_MAX + 1), Screen::Tasks), Err(QueryError::TooLong));
    assert_eq!(Query::parse(&"x ".repeat(33), Screen::Tasks), Err(QueryError::TooManyWords));
}

#[test]
fn scripts_without_spaces_are_indexed_and_asked_for_letter_by_letter() {
    assert_eq!(index_text("plain text"), "plain text");
    assert_eq!(
        index_text("ab日本語のc").split_whitespace().collect::<Vec<_>>(),
        ["ab", "日", "本", "語", "の", "c"]
    );
    assert_eq!(tasks("日本").wanted().as_deref(), Some("\"日 本\"*"));
}

fn marked(text: &str, query: &str, most: usize) -> Option<String> {
    let snippet = snippet(text, &tasks(query).words, most)?;
    Some(
        snippet
            .parts
            .iter()
            .map(|part| if part.hit { format!("[{}]", part.text) } else { part.text.clone() })
            .collect(),
    )
}

#[test]
fn a_snippet_marks_every_word_and_the_beginning_of_the_last() {
    assert_eq!(
        marked("Build the Reports, then build more", "build rep", 80).as_deref(),
        Some("[Build] the [Reports], then [build] more")
    );
    assert_eq!(marked("the dry run of a run", "\"dry run\"", 80).as_deref(), Some("the [dry run] of a run"));
    assert_eq!(
        marked("Café MÜLLER cafe\u{301}", "cafe muller", 80).as_deref(),
        Some("[Café] [MÜLLER] [cafe\u{301}]")
    );
    assert_eq!(marked("これは日本語です", "日本語", 80).as_deref(), Some("これは[日本語]です"));
}

#[test]
fn a_snippet_of_a_long_text_is_cut_around_the_first_hit() {
    let text = format!("{} needle {}", "before ".repeat(50).trim(), "after ".repeat(50).trim());
    let shown = marked(&text, "needle", 60).unwrap();
    assert!(shown.starts_with("…before") && shown.contains("[needle]") && shown.ends_with('…'), "{shown}");
    assert!(shown.chars().count() <= 64, "{shown}");
}

#[test]
fn a_text_without_any_of_the_words_has_no_snippet() {
    assert_eq!(marked("nothing of it", "needle", 60), None);
    assert_eq!(marked("", "needle", 60), None);
    assert_eq!(marked("needles", "needle ?x", 60), None, "only the last word may be unfinished");
}

#[test]
fn a_snippet_counts_the_words_that_stand_anywhere() {
    let words = tasks("one two three").words;
    assert_eq!(snippet("three one", &words, 80).map(|found| found.words), Some(2));
}
