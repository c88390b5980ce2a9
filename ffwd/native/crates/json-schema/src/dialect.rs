//! The drafts of JSON Schema and the keywords each of them knows.

/// A draft. Later ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    /// The draft that a `$schema` URI names.
    pub fn of_uri(uri: &str) -> Option<Self> {
        let uri = uri.trim_end_matches('#').trim_end_matches('/');
        let path = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        Some(match path {
            "json-schema.org/draft-04/schema" => Self::Draft4,
            "json-schema.org/draft-06/schema" => Self::Draft6,
            "json-schema.org/draft-07/schema" => Self::Draft7,
            "json-schema.org/draft/2019-09/schema" => Self::Draft2019,
            "json-schema.org/draft/2020-12/schema" => Self::Draft2020,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Draft4 => "draft 4",
            Self::Draft6 => "draft 6",
            Self::Draft7 => "draft 7",
            Self::Draft2019 => "draft 2019-09",
            Self::Draft2020 => "draft 2020-12",
        }
    }

    /// Whether `$ref` hides the keywords beside it.
    pub fn reference_hides_siblings(self) -> bool {
        self <= Self::Draft7
    }

    /// Whether `1.0` is an integer.
    pub fn integer_allows_fraction_zero(self) -> bool {
        self >= Self::Draft6
    }

    /// Whether the items that satisfy `contains` count as evaluated.
    pub fn contains_evaluates(self) -> bool {
        self >= Self::Draft2020
    }

    /// The keyword that names a schema.
    pub fn id_keyword(self) -> &'static str {
        if self == Self::Draft4 {
            "id"
        } else {
            "$id"
        }
    }
}

macro_rules! keywords {
    ($($name:ident $text:literal $first:ident $last:ident;)*) => {
        /// A keyword that constrains or applies schemas; all others are annotations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Keyword {
            $($name,)*
        }

        impl Keyword {
            pub const COUNT: usize = [$(Self::$name),*].len();

            /// The keyword of this name, if the dialect knows it.
            pub fn of(text: &str, dialect: Dialect) -> Option<Self> {
                let (keyword, first, last) = match text {
                    $($text => (Self::$name, Dialect::$first, Dialect::$last),)*
                    _ => return None,
                };
                (first <= dialect && dialect <= last).then_some(keyword)
            }

            /// Whether any draft has a keyword of this name.
            pub fn exists(text: &str) -> bool {
                matches!(text, $($text)|*)
            }

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

// Name, spelling, first and last draft. `dependencies` is asserted in every draft.
keywords! {
    Type "type" Draft4 Draft2020;
    Enum "enum" Draft4 Draft2020;
    Const "const" Draft6 Draft2020;
    Reference "$ref" Draft4 Draft2020;
    RecursiveReference "$recursiveRef" Draft2019 Draft2019;
    DynamicReference "$dynamicRef" Draft2020 Draft2020;
    AllOf "allOf" Draft4 Draft2020;
    AnyOf "anyOf" Draft4 Draft2020;
    OneOf "oneOf" Draft4 Draft2020;
    Not "not" Draft4 Draft2020;
    If "if" Draft7 Draft2020;
    Then "then" Draft7 Draft2020;
    Else "else" Draft7 Draft2020;
    Minimum "minimum" Draft4 Draft2020;
    Maximum "maximum" Draft4 Draft2020;
    ExclusiveMinimum "exclusiveMinimum" Draft4 Draft2020;
    ExclusiveMaximum "exclusiveMaximum" Draft4 Draft2020;
    MultipleOf "multipleOf" Draft4 Draft2020;
    MinLength "minLength" Draft4 Draft2020;
    MaxLength "maxLength" Draft4 Draft2020;
    Pattern "pattern" Draft4 Draft2020;
    Format "format" Draft4 Draft2020;
    Properties "properties" Draft4 Draft2020;
    Required "required" Draft4 Draft2020;
    AdditionalProperties "additionalProperties" Draft4 Draft2020;
    PatternProperties "patternProperties" Draft4 Draft2020;
    PropertyNames "propertyNames" Draft6 Draft2020;
    MinProperties "minProperties" Draft4 Draft2020;
    MaxProperties "maxProperties" Draft4 Draft2020;
    Dependencies "dependencies" Draft4 Draft2020;
    DependentRequired "dependentRequired" Draft2019 Draft2020;
    DependentSchemas "dependentSchemas" Draft2019 Draft2020;
    UnevaluatedProperties "unevaluatedProperties" Draft2019 Draft2020;
    Items "items" Draft4 Draft2020;
    AdditionalItems "additionalItems" Draft4 Draft2019;
    PrefixItems "prefixItems" Draft2020 Draft2020;
    MinItems "minItems" Draft4 Draft2020;
    MaxItems "maxItems" Draft4 Draft2020;
    UniqueItems "uniqueItems" Draft4 Draft2020;
    Contains "contains" Draft6 Draft2020;
    MinContains "minContains" Draft2019 Draft2020;
    MaxContains "maxContains" Draft2019 Draft2020;
    UnevaluatedItems "unevaluatedItems" Draft2019 Draft2020;
}

impl Keyword {
    /// Whether it applies subschemas to the value itself.
    pub fn applies_in_place(self) -> bool {
        matches!(
            self,
            Self::Reference
                | Self::RecursiveReference
                | Self::DynamicReference
                | Self::AllOf
                | Self::AnyOf
                | Self::OneOf
                | Self::Not
                | Self::If
                | Self::Dependencies
                | Self::DependentRequired
                | Self::DependentSchemas
        )
    }

    /// Whether it gives properties their place in the declared order.
    pub fn declares_properties(self) -> bool {
        matches!(self, Self::Properties | Self::Required | Self::AdditionalProperties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_known_by_their_uris() {
        for (uri, dialect) in [
            ("http://json-schema.org/draft-04/schema#", Dialect::Draft4),
            ("https://json-schema.org/draft-04/schema", Dialect::Draft4),
            ("http://json-schema.org/draft-07/schema", Dialect::Draft7),
            ("https://json-schema.org/draft/2019-09/schema#", Dialect::Draft2019),
            ("https://json-schema.org/draft/2020-12/schema", Dialect::Draft2020),
        ] {
            assert_eq!(Dialect::of_uri(uri), Some(dialect), "{uri}");
        }
        assert_eq!(Dialect::of_uri("urn:something"), None);
        assert_eq!(Dialect::of_uri("http://json-schema.org/schema#"), None);
    }

    #[test]
    fn keywords_belong_to_drafts() {
        assert_eq!(Keyword::of("const", Dialect::Draft4), None);
        assert_eq!(Keyword::of("const", Dialect::Draft6), Some(Keyword::Const));
        assert_eq!(Keyword::of("additionalItems", Dialect::Draft2020), None);
        assert_eq!(Keyword::of("title", Dialect::Draft2020), None);
        assert_eq!(Keyword::MaxContains.name(), "maxContains");
    }
}
