// The bodies that exist, by mnemonic.
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "isa/decoding.hpp"

namespace rdna {
namespace {

std::unordered_map<std::string, Body>& bodies() {
  static std::unordered_map<std::string, Body> instance;  // made by the first registration, whichever file's it is
  return instance;
}

}  // namespace

Registration::Registration(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) {
    if (bodies().try_emplace(entry.name, entry.body).second) continue;
    std::fprintf(stderr, "rdna-emulator: two bodies are registered for %s\n", entry.name);
    std::abort();
  }
}

Body body_of(const char* mnemonic) {
  const auto entry = bodies().find(mnemonic);
  return entry == bodies().end() ? nullptr : entry->second;
}

std::vector<std::string> registered_mnemonics() {
  std::vector<std::string> names;
  for (const auto& entry : bodies()) names.push_back(entry.first);
  return names;
}

}  // namespace rdna
