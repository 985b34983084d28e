//! Prints the API's OpenAPI document, from which the page's types are generated (`npm --prefix ui run types`).

fn main() {
    let json = taskbell_engine::api::document().to_pretty_json().expect("the document is texts and numbers");
    println!("{json}");
}
