/* Writes a JSON record token by token: forced tokens first, otherwise the lowest allowed one.
 *
 * With the path of a schema, a tokenizer of single bytes and a token that ends the output:
 *
 *     cc -I include examples/record.c -L LIBRARIES -lffwd -o record && ./record schema.json
 */
#include <stdio.h>
#include <stdlib.h>

#include "ffwd.h"

#define NUM_TOKENS 257
#define END 256
#define MASK_WORDS 9

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

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: record SCHEMA\n");
    return 2;
  }
  size_t length;
  char *schema = read_file(arguments[1], &length);

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
  if (ffwd_vocabulary_mask_words(vocabulary) != MASK_WORDS) return 1;

  ffwd_grammar *grammar = NULL;
  ffwd_options options = ffwd_options_default();
  options.whitespace = FFWD_WHITESPACE_COMPACT;
  ffwd_bytes text = {(const uint8_t *)schema, length};
  check(ffwd_compile(vocabulary, FFWD_JSON_SCHEMA, text, &options, NULL, &grammar, &error), &error);
  ffwd_vocabulary_free(vocabulary);
  free(schema);

  ffwd_matcher *matcher = NULL;
  check(ffwd_matcher_new(grammar, 1000, &matcher, &error), &error);
  ffwd_grammar_free(grammar);

  while (!ffwd_matcher_is_terminated(matcher)) {
    const uint32_t *forced;
    size_t num_forced;
    bool accepted = false;
    check(ffwd_matcher_forced_tokens(matcher, &forced, &num_forced, &error), &error);
    if (num_forced > 0) {
      for (size_t at = 0; at < num_forced; at++) {
        if (forced[at] != END) putchar((int)forced[at]);
      }
      check(ffwd_matcher_accept_all(matcher, forced, num_forced, &accepted, &error), &error);
    } else {
      uint32_t mask[MASK_WORDS];
      check(ffwd_matcher_fill(matcher, mask, MASK_WORDS, &error), &error);
      uint32_t token = END;
      /* The end comes first where it is allowed. */
      if ((mask[END / 32] & 1u << END % 32) == 0) {
        for (token = 0; (mask[token / 32] & 1u << token % 32) == 0; token++) {
        }
        putchar((int)token);
      }
      check(ffwd_matcher_accept(matcher, token, &accepted, &error), &error);
    }
    if (!accepted) return 1;
  }
  putchar('\n');
  ffwd_matcher_free(matcher);
  return 0;
}
