// Prints the allowed bytes after each byte of a text, for a regular expression.
//
//     c++ -std=c++17 -I include examples/masks.cpp -L LIBRARIES -lffwd -o masks && ./masks 'a(b|c)+' abc
#include <array>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ffwd.h"

// Objects that free themselves.
template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T *object) const {
    Free(object);
  }
};
using Vocabulary = std::unique_ptr<ffwd_vocabulary, Freed<ffwd_vocabulary_free>>;
using Grammar = std::unique_ptr<ffwd_grammar, Freed<ffwd_grammar_free>>;
using Matcher = std::unique_ptr<ffwd_matcher, Freed<ffwd_matcher_free>>;
using Error = std::unique_ptr<ffwd_error, Freed<ffwd_error_free>>;

// A reference to the error, since C++ does not say which argument is evaluated first.
static void check(ffwd_status status, ffwd_error *&raised) {
  Error error(std::exchange(raised, nullptr));
  if (status != FFWD_OK) throw std::runtime_error(ffwd_error_message(error.get()));
}

static ffwd_bytes bytes_of(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

int main(int count, char **arguments) try {
  if (count != 3) throw std::invalid_argument("usage: masks PATTERN TEXT");
  std::array<uint8_t, 256> bytes;
  std::vector<ffwd_bytes> tokens;
  for (int byte = 0; byte < 256; byte++) {
    bytes[byte] = static_cast<uint8_t>(byte);
    tokens.push_back({&bytes[byte], 1});
  }
  tokens.push_back({nullptr, 0});
  const uint32_t end = 256;

  ffwd_error *error = nullptr;
  ffwd_vocabulary *vocabulary = nullptr;
  check(ffwd_vocabulary_new(tokens.data(), tokens.size(), &end, 1, 0, nullptr, nullptr, &vocabulary, &error), error);
  Vocabulary vocabulary_owner(vocabulary);

  ffwd_grammar *grammar = nullptr;
  check(ffwd_compile(vocabulary, FFWD_REGEX, bytes_of(arguments[1]), nullptr, nullptr, &grammar, &error), error);
  Grammar grammar_owner(grammar);

  ffwd_matcher *matcher = nullptr;
  check(ffwd_matcher_new(grammar, 0, &matcher, &error), error);
  Matcher matcher_owner(matcher);

  const char *text = arguments[2];
  for (size_t at = 0; at <= std::strlen(text); at++) {
    std::vector<uint32_t> mask(ffwd_vocabulary_mask_words(vocabulary));
    check(ffwd_matcher_fill(matcher, mask.data(), mask.size(), &error), error);
    for (uint32_t token = 0; token < tokens.size(); token++) {
      if (mask[token / 32] >> token % 32 & 1) std::cout << (token == end ? std::string("end") : std::string(1, static_cast<char>(token))) << ' ';
    }
    std::cout << '\n';
    if (at == std::strlen(text)) break;
    bool accepted = false;
    check(ffwd_matcher_accept(matcher, static_cast<uint8_t>(text[at]), &accepted, &error), error);
    if (!accepted) {
      std::cout << "refused " << text[at] << '\n';
      return 1;
    }
  }
  return 0;
} catch (const std::exception &failed) {
  std::cerr << failed.what() << '\n';
  return 2;
}
