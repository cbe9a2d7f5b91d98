// The part of msgpack that the metadata of code objects use: maps, arrays, strings, integers, booleans.
#pragma once
#include <map>
#include <vector>

#include "hip/bytes.hpp"

namespace rdna::hip {

struct Value {
  enum class Kind { nothing, boolean, integer, text, list, map } kind = Kind::nothing;
  std::int64_t integer = 0;
  std::string text;
  std::vector<Value> list;
  std::map<std::string, Value> map;

  const Value* find(const char* key) const;                     // null: not there
  std::int64_t number(const char* key, std::int64_t otherwise) const;
  std::string string(const char* key, const char* otherwise) const;
};

Value read_msgpack(Bytes);  // throws DamagedError

}  // namespace rdna::hip
