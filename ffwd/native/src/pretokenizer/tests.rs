use super::*;
#[test]
fn smoke() {
    let p = PreTokenizer::new(&[StageSpec::ByteLevelRegex]).unwrap();
    let t = b"Hello, world  it's   ";
    let v: Vec<&[u8]> = p.pieces(t).map(|x| &t[x.start..x.end]).collect();
    assert_eq!(v.concat(), t);
}
