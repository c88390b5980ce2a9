use super::print::printed;
use super::*;

#[test]
fn try_file() {
    let Ok(path) = std::env::var("LARK_FILE") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    for case in text.split("\u{0}") {
        match parse(case) {
            Ok(grammar) => println!("OK\t{}", printed(&grammar).replace('\n', " ; ")),
            Err(error) => println!("ERR\t{}:{} {:?} {}", error.line(), error.column(), error.kind, error.message),
        }
    }
}
