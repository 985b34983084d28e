use proptest::prelude::*;

use super::*;

fn words(text: &str) -> Inline {
    Inline::Text(text.to_owned())
}

/// The one link of a text.
fn link(text: &str) -> Link {
    match parse(text).as_slice() {
        [Block::Paragraph(spans)] => match spans.as_slice() {
            [Inline::Link(link)] => link.clone(),
            other => panic!("one link, not {other:?}"),
        },
        other => panic!("one paragraph, not {other:?}"),
    }
}

#[test]
fn a_document_becomes_its_blocks() {
    let text = "# Title\n\nOne *two* **three** ~~four~~ `five`\nsix\\\nseven\n\n3. a\n4. b\n\n> q\n\n```rust x\nlet a = 1;\n```\n\n---\n\n|l|r|\n|:-|-:|\n|1|2|\n";
    let expected = vec![
        Block::Heading { level: 1, content: vec![words("Title")] },
        Block::Paragraph(vec![
            words("One "),
            Inline::Emphasis(vec![words("two")]),
            words(" "),
            Inline::Strong(vec![words("three")]),
            words(" "),
            Inline::Strikethrough(vec![words("four")]),
            words(" "),
            Inline::Code("five".to_owned()),
            words("\nsix"),
            Inline::LineBreak,
            words("seven"),
        ]),
        Block::List {
            start: Some(3),
            items: vec![vec![Block::Paragraph(vec![words("a")])], vec![Block::Paragraph(vec![words("b")])]],
        },
        Block::Quote(vec![Block::Paragraph(vec![words("q")])]),
        Block::Code { language: Some("rust".to_owned()), text: "let a = 1;\n".to_owned() },
        Block::Rule,
        Block::Table(Table {
            alignments: vec![Alignment::Left, Alignment::Right],
            head: vec![vec![words("l")], vec![words("r")]],
            rows: vec![vec![vec![words("1")], vec![words("2")]]],
            cut_columns: 0,
            cut_rows: 0,
        }),
    ];
    assert_eq!(parse(text), expected);
}

#[test]
fn raw_html_is_text_as_it_was_written() {
    assert_eq!(parse("<b onclick=x>\nhi</b>"), [Block::Text("<b onclick=x>\nhi</b>".to_owned())]);
    assert_eq!(parse("a <i>b</i>"), [Block::Paragraph(vec![words("a <i>b</i>")])]);
}

#[test]
fn entities_are_decoded_once_and_cleaned() {
    assert_eq!(parse("&lt;b&gt; &#x202e;x&#27;[31m"), [Block::Paragraph(vec![words("<b> x[31m")])]);
}

#[test]
fn an_escape_sequence_goes_whole_though_it_looks_like_a_link() {
    assert_eq!(parse("\u{1b}[31mred\u{1b}[0m"), [Block::Paragraph(vec![words("red")])]);
}

#[test]
fn a_label_of_a_fence_is_a_word_or_nothing() {
    for (label, language) in
        [("c++", Some("c++")), ("\"><img>", None), ("", None), ("a\u{202e}b", Some("ab"))]
    {
        let language = language.map(str::to_owned);
        assert_eq!(parse(&format!("```{label}\nx\n```")), [Block::Code { language, text: "x\n".to_owned() }]);
    }
}

#[test]
fn a_link_says_where_it_leads_and_what_is_odd_about_it() {
    let cautions = |text: &str| link(text).cautions;
    assert_eq!(cautions("[docs](https://example.com/a)"), []);
    assert_eq!(cautions("[example.com/a](https://example.com/a)"), []);
    assert_eq!(cautions("[https://example.com](https://EXAMPLE.com/a)"), []);
    assert_eq!(cautions("[see www.a.example](https://b.example/)"), [], "a sentence names no host by itself");
    assert_eq!(cautions("[www.a.example](https://b.example/)"), [Caution::OtherHostInText]);
    assert_eq!(cautions("[https://a.example](https://b.example/)"), [Caution::OtherHostInText]);
    assert_eq!(cautions("[x](https://a.example@b.example/)"), [Caution::Userinfo]);
    assert_eq!(link("[x](https://a.example@b.example/)").host.as_deref(), Some("b.example"));
    for local in
        ["127.0.0.1:80", "localhost", "10.0.0.1", "[::1]", "0x7f.1", "printer.local", "[::ffff:10.1.1.1]"]
    {
        assert_eq!(cautions(&format!("[x](http://{local}/)")), [Caution::LocalAddress], "{local}");
    }
    let homograph = link("[x](https://\u{430}pple.example/)");
    assert_eq!(homograph.host.as_deref(), Some("xn--pple-43d.example"));
    assert_eq!(homograph.cautions, [Caution::InternationalName]);
    let mail = link("<mailto:a@example.com?bcc=b@example.net>");
    assert_eq!((mail.host.as_deref(), mail.cautions), (Some("example.com"), vec![Caution::MailFields]));
}

#[test]
fn what_is_no_address_of_the_web_opens_nothing() {
    for (url, reason) in [
        ("help", InertReason::Relative),
        ("#top", InertReason::Relative),
        ("//example.com", InertReason::Relative),
        ("javascript:alert(1)", InertReason::Scheme),
        ("data:text/html,x", InertReason::Scheme),
        ("<https://a b/>", InertReason::Characters),
        ("https:/\\example.com", InertReason::Characters),
        ("https://a.example/&#x202e;", InertReason::Characters),
        ("https:example.com", InertReason::Malformed),
        ("https://", InertReason::Malformed),
        ("mailto:nobody", InertReason::Malformed),
    ] {
        assert_eq!(link(&format!("[x]({url})")).inert, Some(reason), "{url}");
    }
    let long = format!("[x](https://example.com/{})", "a".repeat(20_000));
    assert_eq!(link(&long).inert, Some(InertReason::TooLong));
    assert!(link(&long).url.len() < 1_000);
}

#[test]
fn no_bare_address_becomes_a_link() {
    assert_eq!(
        parse("https://example.com www.example.com a@b.example"),
        [Block::Paragraph(vec![words("https://example.com www.example.com a@b.example")])]
    );
}

#[test]
fn an_image_is_its_words_and_where_it_would_have_come_from() {
    let image = Image {
        alt: "a b".to_owned(),
        url: "https://evil.example/x.png".to_owned(),
        host: Some("evil.example".to_owned()),
    };
    assert_eq!(parse("![a *b*](https://evil.example/x.png)"), [Block::Paragraph(vec![Inline::Image(image)])]);
}

#[test]
fn a_table_is_cut_in_both_directions_and_says_so() {
    let row = |cell: &str| format!("|{}\n", format!("{cell}|").repeat(100));
    let text = format!("{}{}{}", row("a"), row("-"), row("x").repeat(20));
    let [Block::Table(table)] = &parse(&text)[..] else { panic!("one table") };
    assert_eq!((table.head.len(), table.cut_columns), (TABLE_COLUMNS_MAX, 36));
    let narrow = format!("|a|\n|-|\n{}", "|x|\n".repeat(700));
    let [Block::Table(table)] = &parse(&narrow)[..] else { panic!("one table") };
    assert_eq!((table.rows.len(), table.cut_rows), (TABLE_ROWS_MAX, 200));
}

#[test]
fn too_many_nodes_are_cut_with_what_is_left_said() {
    let text = "a *b*\n\n".repeat(20_000);
    let blocks = parse(&text);
    assert!(count(&blocks) <= NODES_MAX + DEPTH_MAX + 1);
    assert!(matches!(blocks.last(), Some(Block::Cut { octets }) if *octets > 50_000), "{:?}", blocks.last());
}

#[test]
fn too_long_a_text_is_cut_at_a_character() {
    let text = "é".repeat(INPUT_MAX);
    let blocks = parse(&text);
    assert_eq!(blocks.last(), Some(&Block::Cut { octets: INPUT_MAX }));
}

#[test]
fn documents_share_a_budget() {
    let mut budget = Budget { octets: 20, nodes: 100 };
    assert_eq!(parse_within("one", &mut budget), [Block::Paragraph(vec![words("one")])]);
    assert_eq!(budget, Budget { octets: 17, nodes: 98 });
    let cut = parse_within(&"x".repeat(30), &mut budget);
    assert_eq!(cut.last(), Some(&Block::Cut { octets: 13 }));
    assert_eq!(parse_within("more", &mut budget), [Block::Cut { octets: 4 }]);
}

#[test]
fn what_lies_too_deep_is_text_of_the_deepest() {
    let text = format!("{} deep", ">".repeat(100));
    let blocks = parse(&text);
    assert_eq!(depth(&blocks), DEPTH_MAX);
    assert!(format!("{blocks:?}").contains("deep"));
}

/// Texts on which parsers take their time, at the full size.
#[test]
fn odd_texts_of_full_size_are_read_in_time() {
    for unit in [
        "[", "![", "*", "_a", "`", ">", "> - ", "<", "|", "|a\n", "- ", "[a](", "&", "a\n", "*a **b ", "~~",
        "](",
    ] {
        let text = unit.repeat(INPUT_MAX / unit.len());
        let began = std::time::Instant::now();
        let blocks = parse(&text);
        assert!(count(&blocks) <= NODES_MAX + DEPTH_MAX + 1, "{unit:?}");
        assert!(began.elapsed().as_secs() < 20, "{unit:?} took {:?}", began.elapsed());
    }
}

fn count(blocks: &[Block]) -> usize {
    blocks.iter().map(count_block).sum()
}

fn count_block(block: &Block) -> usize {
    1 + match block {
        Block::Paragraph(spans) | Block::Heading { content: spans, .. } => count_spans(spans),
        Block::List { items, .. } => items.iter().map(|item| 1 + count(item)).sum(),
        Block::Quote(inner) => count(inner),
        Block::Table(table) => {
            table.rows.iter().chain([&table.head]).flatten().map(|cell| 1 + count_spans(cell)).sum()
        }
        Block::Code { .. } | Block::Rule | Block::Text(_) | Block::Cut { .. } => 0,
    }
}

fn count_spans(spans: &[Inline]) -> usize {
    let inner = |span: &Inline| match span {
        Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strikethrough(inner) => count_spans(inner),
        Inline::Link(link) => count_spans(&link.content),
        Inline::Text(_) | Inline::Code(_) | Inline::LineBreak | Inline::Image(_) => 0,
    };
    spans.iter().map(|span| 1 + inner(span)).sum()
}

fn depth(blocks: &[Block]) -> usize {
    let below = |block: &Block| match block {
        Block::Quote(inner) => depth(inner),
        Block::List { items, .. } => 1 + items.iter().map(|item| depth(item)).max().unwrap_or(0),
        Block::Paragraph(spans) | Block::Heading { content: spans, .. } => depth_spans(spans),
        Block::Table(_) | Block::Code { .. } | Block::Rule | Block::Text(_) | Block::Cut { .. } => 0,
    };
    blocks.iter().map(|block| 1 + below(block)).max().unwrap_or(0)
}

fn depth_spans(spans: &[Inline]) -> usize {
    let below = |span: &Inline| match span {
        Inline::Strong(inner) | Inline::Emphasis(inner) | Inline::Strikethrough(inner) => {
            1 + depth_spans(inner)
        }
        Inline::Link(link) => 1 + depth_spans(&link.content),
        Inline::Text(_) | Inline::Code(_) | Inline::LineBreak | Inline::Image(_) => 0,
    };
    spans.iter().map(below).max().unwrap_or(0)
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let blocks = parse(text);
    prop_assert!(count(&blocks) <= NODES_MAX + DEPTH_MAX + 1);
    prop_assert!(depth(&blocks) <= DEPTH_MAX);
    let shown = format!("{blocks:?}");
    prop_assert!(!shown.contains("\\u{202e}"), "{}", shown);
    Ok(())
}

proptest! {
    #[test]
    fn any_text_becomes_a_bounded_tree(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_pile_of_marks_becomes_a_bounded_tree(
        marks in proptest::collection::vec(
            proptest::sample::select(vec![
                "*", "**", "_", "~~", "`", "```", "[", "]", "(", ")", "![", "<", ">", "> ", "- ", "1. ", "#", "|",
                "|-|", "\n", "\n\n", "    ", "\t", "a", "https://a.example", "&#x202e;", "\\", "---", "<a>", "\u{202e}",
            ]),
            0..400,
        )
    ) {
        check(&marks.concat())?;
    }
}
