/* Writes a JSON record token by token: forced tokens first, otherwise the lowest allowed one.
 *
 * With the path of a schema, and that of a tokenizer.json; without it the tokens are single bytes:
 *
 *     cc -I include examples/record.c -L LIBRARIES -lffwd -o record && ./record schema.json tokenizer.json
 */
#include <stdio.h>
#include <stdlib.h>

#include "ffwd.h"

#define NUM_TOKENS 257
#define END 256

/* A pointer to the error, since C does not say which argument is evaluated first. */
static void check(ffwd_status status, ffwd_error **error) {
  if (status == FFWD_OK) return;
  fprintf(stderr, "%s\n", ffwd_error_message(*error));
  ffwd_error_free(*error);
  exit(1);
}

/* Each byte is a token, so a text is encoded as it is. */
static size_t encode(void *context, const uint8_t *text, size_t length, uint32_t *tokens, size_t capacity) {
  (void)context;
  for (size_t at = 0; at < length && at < capacity; at++) tokens[at] = text[at];
  return length;
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  size_t capacity = 1 << 20;
  char *text = malloc(capacity);
  if (text == NULL) exit(1);
  *length = fread(text, 1, capacity, file);
  fclose(file);
  return text;
}

/* Tokens of single bytes, and one that ends the output. */
static ffwd_vocabulary *bytes_as_tokens(void) {
  uint8_t bytes[256];
  ffwd_bytes tokens[NUM_TOKENS] = {{0}};
  for (int byte = 0; byte < 256; byte++) {
    bytes[byte] = (uint8_t)byte;
    tokens[byte] = (ffwd_bytes){&bytes[byte], 1};
  }
  const uint32_t end = END;
  ffwd_error *error = NULL;
  ffwd_vocabulary *vocabulary = NULL;
  check(ffwd_vocabulary_new(tokens, NUM_TOKENS, &end, 1, 0, encode, NULL, &vocabulary, &error), &error);
  return vocabulary;
}

/* With no end tokens, they are those with a well-known name. */
static ffwd_vocabulary *tokens_of_file(const char *path) {
  ffwd_error *error = NULL;
  ffwd_vocabulary *vocabulary = NULL;
  check(ffwd_vocabulary_from_file(path, NULL, 0, 0, &vocabulary, &error), &error);
  return vocabulary;
}

static uint32_t lowest(const uint32_t *mask) {
  uint32_t token = 0;
  while ((mask[token / 32] & 1u << token % 32) == 0) token++;
  return token;
}

int main(int count, char **arguments) {
  if (count != 2 && count != 3) {
    fprintf(stderr, "usage: record SCHEMA [TOKENIZER]\n");
    return 2;
  }
  size_t length;
  char *schema = read_file(arguments[1], &length);
  ffwd_vocabulary *vocabulary = count == 3 ? tokens_of_file(arguments[2]) : bytes_as_tokens();
  size_t num_words = ffwd_vocabulary_mask_words(vocabulary);
  uint32_t *mask = malloc(num_words * sizeof *mask);
  if (mask == NULL) return 1;

  ffwd_error *error = NULL;
  ffwd_grammar *grammar = NULL;
  ffwd_options options = ffwd_options_default();
  options.whitespace = FFWD_WHITESPACE_COMPACT;
  ffwd_bytes text = {(const uint8_t *)schema, length};
  check(ffwd_compile(vocabulary, FFWD_JSON_SCHEMA, text, &options, NULL, &grammar, &error), &error);
  free(schema);

  ffwd_matcher *matcher = NULL;
  check(ffwd_matcher_new(grammar, 1000, &matcher, &error), &error);
  ffwd_grammar_free(grammar);

  while (!ffwd_matcher_is_terminated(matcher)) {
    const uint32_t *tokens;
    uint32_t chosen;
    size_t num_tokens;
    bool accepted = false;
    check(ffwd_matcher_forced_tokens(matcher, &tokens, &num_tokens, &error), &error);
    if (num_tokens == 0) {
      if (ffwd_matcher_is_accepting(matcher)) break; /* An end token would do, too. */
      check(ffwd_matcher_fill(matcher, mask, num_words, &error), &error);
      chosen = lowest(mask);
      tokens = &chosen;
      num_tokens = 1;
    }
    for (size_t at = 0; at < num_tokens; at++) {
      ffwd_bytes written = ffwd_vocabulary_token(vocabulary, tokens[at]);
      fwrite(written.data, 1, written.length, stdout);
    }
    check(ffwd_matcher_accept_all(matcher, tokens, num_tokens, &accepted, &error), &error);
    if (!accepted) return 1;
  }
  putchar('\n');
  ffwd_matcher_free(matcher);
  ffwd_vocabulary_free(vocabulary);
  free(mask);
  return 0;
}
