/* ffwd for C: masks of the tokens that keep an output within a grammar, and the tokens that must come.
 *
 * docs/c.md is the guide. `make header` writes this file with cbindgen.
 *
 * Errors: functions that can fail return a status, and write an object with the text and its place
 * to their last argument, which may be null. After an error nothing has changed.
 *
 * Threads: vocabularies and grammars may be used by any number of threads at once; a matcher, and an
 * error, by one thread at a time.
 *
 * Memory: each `_free` frees what functions of its type create. Objects may be freed in any order, and
 * freeing null does nothing. */

#ifndef FFWD_H
#define FFWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 A language: a JSON Schema.
 */
#define FFWD_JSON_SCHEMA 0

/*
 A language: a regular expression, which the whole text matches.
 */
#define FFWD_REGEX 1

/*
 A language: a grammar in llguidance's Lark.
 */
#define FFWD_LARK 2

/*
 A language: a grammar in llama.cpp's GBNF.
 */
#define FFWD_GBNF 3

/*
 A language: a grammar in XGrammar's EBNF.
 */
#define FFWD_EBNF 4

/*
 White space: one layout that `json.dumps` writes, chosen by the text itself.
 */
#define FFWD_WHITESPACE_CONSISTENT 0

/*
 White space: any, in runs of at most `max_whitespace`.
 */
#define FFWD_WHITESPACE_FLEXIBLE 1

/*
 White space: none.
 */
#define FFWD_WHITESPACE_COMPACT 2

/*
 White space: one space after commas and colons.
 */
#define FFWD_WHITESPACE_SINGLE_SPACE 3

/*
 Regular expressions in the syntax of Rust's crate `regex`.
 */
#define FFWD_DIALECT_RUST 0

/*
 Regular expressions in the syntax of ECMAScript.
 */
#define FFWD_DIALECT_ECMA 1

/*
 Regular expressions in the syntax of Python's `re`.
 */
#define FFWD_DIALECT_PYTHON 2

/*
 How a call ended.
 */
typedef enum {
  /*
   It succeeded.
   */
  FFWD_OK = 0,
  /*
   A pointer is null, a text is not UTF-8, or a number has no meaning.
   */
  FFWD_INVALID_ARGUMENT = 1,
  /*
   The tokens form no usable vocabulary, or the caller's encoder failed.
   */
  FFWD_INVALID_VOCABULARY = 2,
  /*
   A grammar, pattern or schema breaks its syntax.
   */
  FFWD_INVALID_GRAMMAR = 3,
  /*
   It is valid, and uses something that is not supported; the text names it.
   */
  FFWD_UNSUPPORTED = 4,
  /*
   No text matches it.
   */
  FFWD_UNSATISFIABLE = 5,
  /*
   A limit ran out. Everything works on, and the same call may be repeated with others.
   */
  FFWD_LIMIT_EXCEEDED = 6,
  /*
   A token outside the vocabulary, or one after the end.
   */
  FFWD_INVALID_TOKEN = 7,
  /*
   No text ends within the given number of tokens.
   */
  FFWD_BUDGET_TOO_SMALL = 8,
  /*
   A fault of ffwd; please report it. The objects of the call must only be freed.
   */
  FFWD_INTERNAL_ERROR = 9,
  /*
   A file is missing or cannot be read.
   */
  FFWD_UNREADABLE_FILE = 10,
} ffwd_status;

/*
 An error: its status, text and place.
 */
typedef struct ffwd_error ffwd_error;

/*
 A grammar, compiled for one vocabulary.
 */
typedef struct ffwd_grammar ffwd_grammar;

/*
 The state of one sequence. One thread may use it at a time.
 */
typedef struct ffwd_matcher ffwd_matcher;

/*
 The tokens of a model, and what its grammars share.
 */
typedef struct ffwd_vocabulary ffwd_vocabulary;

/*
 Bytes of the caller.
 */
typedef struct {
  /*
   The first byte; may be null if there are none.
   */
  const uint8_t *data;
  /*
   The number of bytes.
   */
  size_t length;
} ffwd_bytes;

/*
 How a text is read, and how JSON is written. `ffwd_options_default` has the defaults.
 */
typedef struct {
  /*
   One of `FFWD_WHITESPACE_…`.
   */
  uint32_t whitespace;
  /*
   The longest run of flexible white space, in characters.
   */
  uint32_t max_whitespace;
  /*
   Whether properties may come in any order; otherwise in the order of the schema.
   */
  bool any_property_order;
  /*
   Whether every valid spelling of a number is allowed, such as `21.0` and `1e999`.
   */
  bool any_numbers;
  /*
   Whether the characters of strings may be written as any escape, such as `\u00e9` and `\/`.
   */
  bool any_escapes;
  /*
   Whether keywords that cannot be enforced are ignored instead of refused.
   */
  bool lenient;
  /*
   One of `FFWD_DIALECT_…`.
   */
  uint32_t regex_dialect;
  /*
   The rule that texts of GBNF and EBNF match; `root` by default.
   */
  ffwd_bytes root;
} ffwd_options;

/*
 How much a compilation, and each call of the grammar's matchers, may use.

 The largest value of a type lifts a limit; seconds are lifted by infinity.
 */
typedef struct {
  /*
   Bytes of the text of the grammar.
   */
  size_t source_bytes;
  /*
   Brackets in brackets.
   */
  size_t nesting;
  /*
   Byte expressions of one lexeme.
   */
  size_t expression_nodes;
  /*
   States of the automaton at a time.
   */
  size_t states;
  /*
   Stacks of the automaton at a time.
   */
  size_t stacks;
  /*
   Bytes built lazily; exceeding it evicts them and is no error.
   */
  size_t memory_bytes;
  /*
   Bytes that one call holds at a time.
   */
  size_t work_bytes;
  /*
   Elementary steps of the compilation.
   */
  uint64_t compile_steps;
  /*
   Elementary steps of one call of a matcher.
   */
  uint64_t call_steps;
  /*
   Seconds of the compilation.
   */
  double compile_seconds;
  /*
   Seconds of one call of a matcher.
   */
  double call_seconds;
} ffwd_limits;

/*
 Encode a text as the model's tokenizer does, without special tokens, as in the middle of a text.

 `text` has `length` bytes of UTF-8. Write up to `capacity` ids to `tokens`, and return the number
 of ids that the text has. If that is more than `capacity`, the function is called again with
 enough room. `SIZE_MAX` says that the text cannot be encoded. Any thread may call it.
 */
typedef size_t (*ffwd_encode)(void *context,
                              const uint8_t *text,
                              size_t length,
                              uint32_t *tokens,
                              size_t capacity);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Return the version, such as `0.2.0`. The text is static and ends with a zero byte.
 */
const char *ffwd_version(void);

/*
 Return the status of an error; `FFWD_OK` of null.

 # Safety
 `error` is null or an error that was not freed.
 */
ffwd_status ffwd_error_status(const ffwd_error *error);

/*
 Return what is wrong, where, and what to do, in UTF-8 with a zero byte at the end; null of null.

 # Safety
 `error` is null or an error that was not freed; the text lives as long as it.
 */
const char *ffwd_error_message(const ffwd_error *error);

/*
 Return the JSON pointer of the schema at fault, in UTF-8 with a zero byte at the end; empty
 where no schema is at fault, null of null.

 # Safety
 `error` is null or an error that was not freed; the text lives as long as it.
 */
const char *ffwd_error_pointer(const ffwd_error *error);

/*
 Return the line in the text of the grammar, from 1; 0 if none is known.

 # Safety
 `error` is null or an error that was not freed.
 */
size_t ffwd_error_line(const ffwd_error *error);

/*
 Return the column in that line, in characters from 1; 0 if none is known.

 # Safety
 `error` is null or an error that was not freed.
 */
size_t ffwd_error_column(const ffwd_error *error);

/*
 Free an error.

 # Safety
 `error` is null or an error that was not freed.
 */
void ffwd_error_free(ffwd_error *error);

/*
 Return the default options: consistent white space, declared order, plain numbers, canonical
 escapes, strict.
 */
ffwd_options ffwd_options_default(void);

/*
 Return the default limits, which suit a server that takes grammars from strangers.
 */
ffwd_limits ffwd_limits_default(void);

/*
 Compile a grammar.

 Args:
     language: One of `FFWD_JSON_SCHEMA`, `FFWD_REGEX`, `FFWD_LARK`, `FFWD_GBNF`, `FFWD_EBNF`.
     text: The schema, pattern or grammar, in UTF-8.
     options, limits: Null for the defaults.
     grammar: Receives the grammar.

 # Safety
 The pointers are null where that is allowed, or valid.
 */
ffwd_status ffwd_compile(const ffwd_vocabulary *vocabulary,
                         uint32_t language,
                         ffwd_bytes text,
                         const ffwd_options *options,
                         const ffwd_limits *limits,
                         ffwd_grammar **grammar,
                         ffwd_error **error);

/*
 Free a grammar. Its matchers keep what they need of it.

 # Safety
 `grammar` is null or was not freed.
 */
void ffwd_grammar_free(ffwd_grammar *grammar);

/*
 Return the bytes that everything built for a grammar so far takes, as estimated; 0 of null.

 # Safety
 `grammar` is null or was not freed.
 */
uint64_t ffwd_grammar_memory_bytes(const ffwd_grammar *grammar);

/*
 Make a matcher at the start of a sequence.

 Args:
     max_tokens: The most tokens of the output, the end token included; masks then leave out
         tokens after which too few remain. 0 for no bound.
     matcher: Receives the matcher.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_new(const ffwd_grammar *grammar,
                             size_t max_tokens,
                             ffwd_matcher **matcher,
                             ffwd_error **error);

/*
 Make an independent matcher in the same state.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_fork(const ffwd_matcher *matcher, ffwd_matcher **fork, ffwd_error **error);

/*
 Write the mask: bit `t % 32` of word `t / 32` is set if token `t` may come next.

 After the end these are the end tokens. Words behind those of the vocabulary are not written.

 Args:
     words: `num_words` words of the caller, at least `ffwd_vocabulary_mask_words`.

 # Safety
 The pointers are valid for the given numbers.
 */
ffwd_status ffwd_matcher_fill(const ffwd_matcher *matcher,
                              uint32_t *words,
                              size_t num_words,
                              ffwd_error **error);

/*
 Accept a token, or write false to `accepted` and change nothing if the grammar refuses it.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_accept(ffwd_matcher *matcher,
                                uint32_t token,
                                bool *accepted,
                                ffwd_error **error);

/*
 Accept all tokens, or write false to `accepted` and accept none if the grammar refuses one.

 # Safety
 The pointers are valid for the given number.
 */
ffwd_status ffwd_matcher_accept_all(ffwd_matcher *matcher,
                                    const uint32_t *tokens,
                                    size_t num_tokens,
                                    bool *accepted,
                                    ffwd_error **error);

/*
 Write how many of the tokens, from the first on, the grammar accepts; change nothing.

 # Safety
 The pointers are valid for the given number.
 */
ffwd_status ffwd_matcher_validate(const ffwd_matcher *matcher,
                                  const uint32_t *tokens,
                                  size_t num_tokens,
                                  size_t *num_valid,
                                  ffwd_error **error);

/*
 Take back the last tokens, an end token included.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_rollback(ffwd_matcher *matcher, size_t num_tokens, ffwd_error **error);

/*
 Return to the start of the sequence.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_reset(ffwd_matcher *matcher, ffwd_error **error);

/*
 Return the number of tokens accepted so far, an end token included; 0 of null.

 # Safety
 `matcher` is null or was not freed.
 */
size_t ffwd_matcher_num_tokens(const ffwd_matcher *matcher);

/*
 Return whether the output may end here; false of null.

 # Safety
 `matcher` is null or was not freed.
 */
bool ffwd_matcher_is_accepting(const ffwd_matcher *matcher);

/*
 Return whether an end token was accepted; false of null.

 # Safety
 `matcher` is null or was not freed.
 */
bool ffwd_matcher_is_terminated(const ffwd_matcher *matcher);

/*
 Find the tokens that must come next, spelled as the vocabulary's encoder spells the text.

 Tokens at the end that later text could change are left out. None are accepted.

 Args:
     tokens, num_tokens: Receive them. They live until the next call with this matcher.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_forced_tokens(ffwd_matcher *matcher,
                                       const uint32_t **tokens,
                                       size_t *num_tokens,
                                       ffwd_error **error);

/*
 Find the bytes that must come next, up to a character boundary.

 Args:
     max_bytes: The most bytes to return.
     bytes: Receives them. They live until the next call with this matcher.

 # Safety
 The pointers are valid.
 */
ffwd_status ffwd_matcher_forced_bytes(ffwd_matcher *matcher,
                                      size_t max_bytes,
                                      ffwd_bytes *bytes,
                                      ffwd_error **error);

/*
 Free a matcher.

 # Safety
 `matcher` is null or was not freed.
 */
void ffwd_matcher_free(ffwd_matcher *matcher);

/*
 Make a vocabulary of a tokenizer.json of Hugging Face, with an encoder for forced tokens.

 Supported is byte-pair encoding: byte-level, or with U+2581 for spaces and byte fallback.

 Args:
     path: The path of the file, in UTF-8 with a zero byte at the end.
     end_tokens, num_end_tokens: The tokens that end a sequence. With none, the added tokens with
         a well-known name, such as `</s>` and `<|im_end|>`.
     width: The number of logits of the model; 0 for the number of the tokenizer's ids.
     vocabulary: Receives the vocabulary.

 # Safety
 The pointers are valid for the given numbers.
 */
ffwd_status ffwd_vocabulary_from_file(const char *path,
                                      const uint32_t *end_tokens,
                                      size_t num_end_tokens,
                                      size_t width,
                                      ffwd_vocabulary **vocabulary,
                                      ffwd_error **error);

/*
 Make a vocabulary of the text of a tokenizer.json; the rest is as in `ffwd_vocabulary_from_file`.

 Args:
     json: The contents of the file. They are not used after the call.

 # Safety
 The pointers are valid for the given numbers.
 */
ffwd_status ffwd_vocabulary_from_json(ffwd_bytes json,
                                      const uint32_t *end_tokens,
                                      size_t num_end_tokens,
                                      size_t width,
                                      ffwd_vocabulary **vocabulary,
                                      ffwd_error **error);

/*
 Make a vocabulary of the bytes of its tokens.

 Args:
     tokens: The bytes of token `i` at index `i`. A null `data` stands for a token without text
         (control, padding, unused), which masks never allow.
     num_tokens: How many there are.
     end_tokens, num_end_tokens: The tokens that end a sequence, at least one.
     width: The number of logits of the model; 0 for the number of tokens.
     encode: May be null. `ffwd_matcher_forced_tokens` needs it.
     context: Passed on to `encode`; must live as long as the vocabulary and its grammars.
     vocabulary: Receives the vocabulary.

 # Safety
 The pointers are valid for the given numbers.
 */
ffwd_status ffwd_vocabulary_new(const ffwd_bytes *tokens,
                                size_t num_tokens,
                                const uint32_t *end_tokens,
                                size_t num_end_tokens,
                                size_t width,
                                ffwd_encode encode,
                                void *context,
                                ffwd_vocabulary **vocabulary,
                                ffwd_error **error);

/*
 Return the number of ids: the width of the model's logits; 0 of null.

 # Safety
 `vocabulary` is null or was not freed.
 */
size_t ffwd_vocabulary_width(const ffwd_vocabulary *vocabulary);

/*
 Return the number of 32-bit words of a mask: a bit for each id, rounded up; 0 of null.

 # Safety
 `vocabulary` is null or was not freed.
 */
size_t ffwd_vocabulary_mask_words(const ffwd_vocabulary *vocabulary);

/*
 Return the bytes of a token; none, with null `data`, if it has no text or does not exist.

 # Safety
 `vocabulary` is null or was not freed; the bytes live as long as it.
 */
ffwd_bytes ffwd_vocabulary_token(const ffwd_vocabulary *vocabulary, uint32_t token);

/*
 Free a vocabulary. Its grammars keep what they need of it.

 # Safety
 `vocabulary` is null or was not freed.
 */
void ffwd_vocabulary_free(ffwd_vocabulary *vocabulary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FFWD_H */
