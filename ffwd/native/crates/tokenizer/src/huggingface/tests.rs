use super::*;

type Change = fn(&mut Value);

/// Byte-level: token `b` is byte `b`, 256 is `ab`, then `</s>` and `<think>`.
fn byte_level(change: impl FnOnce(&mut Value)) -> String {
    let mut next = 0x100u32;
    let mut vocab = serde_json::Map::new();
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let written = match printable {
            true => char::from(byte),
            false => {
                next += 1;
                char::from_u32(next - 1).unwrap()
            }
        };
        vocab.insert(written.to_string(), byte.into());
    }
    vocab.insert("ab".into(), 256.into());
    let added = |id: u32, content: &str, special: bool| {
        serde_json::json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special
        })
    };
    let mut file = serde_json::json!({
        "version": "1.0",
        "added_tokens": [added(257, "</s>", true), added(258, "<think>", false)],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]]}
    });
    change(&mut file);
    file.to_string()
}

fn read_text(json: &str) -> Result<HuggingFace, HuggingFaceError> {
    read(json.as_bytes(), None, None)
}

fn refusal(change: impl FnOnce(&mut Value)) -> HuggingFaceError {
    read_text(&byte_level(change)).err().unwrap()
}

#[test]
fn a_byte_level_file() {
    let read = read_text(&byte_level(|_| ())).unwrap();
    assert_eq!(read.vocabulary.eos(), [TokenId(257)]);
    assert_eq!(read.vocabulary.width(), 259);
    assert_eq!(read.vocabulary.text(TokenId(256)), b"ab");
    assert_eq!(read.vocabulary.text(TokenId(0x20)), b" ");
    assert!(read.vocabulary.text(TokenId(258)).is_empty());
    assert!(read.tokenizer.limits().is_empty());
    let tokens = read.tokenizer.encode(b"abc</s>", &EncodeOptions::default()).unwrap();
    assert_eq!(tokens[..2], [TokenId(256), TokenId(u32::from(b'c'))]);
    assert_eq!(tokens.len(), 6);
}

#[test]
fn a_model_without_a_name_and_merges_that_come_first() {
    let unusual = byte_level(|file| {
        let model = file["model"].as_object_mut().unwrap();
        model.remove("type");
        let vocab = model.remove("vocab").unwrap();
        model.insert("vocab".into(), vocab);
    });
    assert!(unusual.find("merges") < unusual.find("vocab"));
    assert_eq!(read_text(&unusual).unwrap().vocabulary.text(TokenId(256)), b"ab");
}

#[test]
fn models_and_parts_are_refused_by_name() {
    let cases: [(&str, Change); 7] = [
        ("Unigram", |file| file["model"] = serde_json::json!({"type": "Unigram", "vocab": []})),
        ("Unigram", |file| file["model"] = serde_json::json!({"vocab": [["a", -1.0]]})),
        ("WordPiece", |file| file["model"] = serde_json::json!({"vocab": {"a": 1}})),
        ("dropout 0.1", |file| file["model"]["dropout"] = 0.1.into()),
        ("Lowercase", |file| file["normalizer"] = serde_json::json!({"type": "Lowercase"})),
        ("Whitespace", |file| file["pre_tokenizer"] = serde_json::json!({"type": "Whitespace"})),
        ("`decoder`", |file| file["decoder"] = Value::Null),
    ];
    for (named, change) in cases {
        let refused = refusal(change);
        assert!(matches!(refused, HuggingFaceError::Unsupported(_)), "{refused}");
        assert!(refused.to_string().contains(named), "{named}: {refused}");
    }
}

#[test]
fn contradictions_are_refused() {
    let cases: [(&str, Change); 6] = [
        ("`use_regex` must be", |file| file["pre_tokenizer"]["use_regex"] = 1.into()),
        ("`ignore_merges` must be", |file| file["model"]["ignore_merges"] = "no".into()),
        ("`model`", |file| file["model"] = Value::Null),
        ("no piece", |file| file["model"]["merges"] = serde_json::json!([["a", "c"]])),
        ("has the id 300", |file| file["added_tokens"][1]["id"] = 300.into()),
        ("missing field `special`", |file| {
            file["added_tokens"][0].as_object_mut().unwrap().remove("special");
        }),
    ];
    for (named, change) in cases {
        let refused = refusal(change);
        assert!(matches!(refused, HuggingFaceError::Corrupt(_)), "{refused}");
        assert!(refused.to_string().contains(named), "{named}: {refused}");
    }
    let cut = byte_level(|_| ());
    assert!(matches!(read_text(&cut[..cut.len() / 2]), Err(HuggingFaceError::Corrupt(_))));
}

#[test]
fn ends_and_width_must_fit() {
    let json = byte_level(|_| ());
    let with = |ends: Option<&[TokenId]>, width| read(json.as_bytes(), ends, width).err();
    assert!(matches!(with(Some(&[TokenId(256)]), None), Some(HuggingFaceError::Tokens(_))));
    assert!(matches!(with(None, Some(100)), Some(HuggingFaceError::Tokens(_))));
    assert!(matches!(with(Some(&[TokenId(999)]), None), Some(HuggingFaceError::Vocabulary(_))));
    assert_eq!(read(json.as_bytes(), None, Some(300)).unwrap().vocabulary.width(), 300);
    let nameless = byte_level(|file| file["added_tokens"] = serde_json::json!([]));
    let refused = read_text(&nameless).err().unwrap();
    assert!(refused.to_string().contains("`end_tokens`"), "{refused}");
}
