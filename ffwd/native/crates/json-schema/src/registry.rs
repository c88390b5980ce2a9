//! The documents that references may lead to: those of the caller, and the metaschemas of all drafts.
//! Nothing is fetched.

use std::collections::BTreeMap;

use super::uri::split_fragment;

/// Documents by their URI, as JSON text. Each is read when something first refers to it.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    documents: BTreeMap<String, String>,
}

impl Registry {
    /// Makes a registry of documents by their retrieval URIs.
    pub fn new(documents: impl IntoIterator<Item = (String, String)>) -> Self {
        let plain = |(uri, text): (String, String)| (split_fragment(&uri).0.to_owned(), text);
        Self { documents: documents.into_iter().map(plain).collect() }
    }

    /// The document of this URI, which has no fragment.
    pub fn get(&self, uri: &str) -> Option<&str> {
        let own = self.documents.get(uri).map(String::as_str);
        own.or_else(|| METASCHEMAS.iter().find(|(known, _)| *known == uri).map(|&(_, text)| text))
    }

    /// The URIs of the caller's documents.
    pub fn uris(&self) -> impl Iterator<Item = &str> {
        self.documents.keys().map(String::as_str)
    }
}

macro_rules! metaschemas {
    ($($uri:literal $file:literal;)*) => {
        const METASCHEMAS: &[(&str, &str)] =
            &[$(($uri, include_str!(concat!("metaschemas/", $file, ".json")))),*];
    };
}

metaschemas! {
    "http://json-schema.org/draft-04/schema" "draft-04";
    "http://json-schema.org/draft-06/schema" "draft-06";
    "http://json-schema.org/draft-07/schema" "draft-07";
    "https://json-schema.org/draft/2019-09/schema" "draft-2019-09";
    "https://json-schema.org/draft/2019-09/meta/core" "draft-2019-09-core";
    "https://json-schema.org/draft/2019-09/meta/applicator" "draft-2019-09-applicator";
    "https://json-schema.org/draft/2019-09/meta/validation" "draft-2019-09-validation";
    "https://json-schema.org/draft/2019-09/meta/meta-data" "draft-2019-09-meta-data";
    "https://json-schema.org/draft/2019-09/meta/format" "draft-2019-09-format";
    "https://json-schema.org/draft/2019-09/meta/content" "draft-2019-09-content";
    "https://json-schema.org/draft/2020-12/schema" "draft-2020-12";
    "https://json-schema.org/draft/2020-12/meta/core" "draft-2020-12-core";
    "https://json-schema.org/draft/2020-12/meta/applicator" "draft-2020-12-applicator";
    "https://json-schema.org/draft/2020-12/meta/unevaluated" "draft-2020-12-unevaluated";
    "https://json-schema.org/draft/2020-12/meta/validation" "draft-2020-12-validation";
    "https://json-schema.org/draft/2020-12/meta/meta-data" "draft-2020-12-meta-data";
    "https://json-schema.org/draft/2020-12/meta/format-annotation" "draft-2020-12-format-annotation";
    "https://json-schema.org/draft/2020-12/meta/format-assertion" "draft-2020-12-format-assertion";
    "https://json-schema.org/draft/2020-12/meta/content" "draft-2020-12-content";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metaschemas_are_where_they_say() {
        for (uri, text) in METASCHEMAS {
            let document: serde_json::Value = serde_json::from_str(text).unwrap();
            let id = document.get("$id").or(document.get("id")).unwrap().as_str().unwrap();
            assert_eq!(split_fragment(id).0, *uri);
        }
        let own = Registry::new([("http://example.com/a#".into(), "{}".into())]);
        assert_eq!(own.get("http://example.com/a"), Some("{}"));
        assert!(own.get("http://json-schema.org/draft-07/schema").is_some());
        assert_eq!(own.get("http://example.com/b"), None);
    }
}
