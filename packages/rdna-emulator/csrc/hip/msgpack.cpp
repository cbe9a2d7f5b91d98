#include "hip/msgpack.hpp"

namespace rdna::hip {
namespace {

constexpr int kDeepest = 32;

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  Value value(int depth = 0) {
    if (depth > kDeepest) throw DamagedError("the metadata are nested too deeply");
    const u8 tag = take<u8>();
    if (tag < 0x80) return integer(tag);
    if (tag < 0x90) return map(tag & 0xf, depth);
    if (tag < 0xa0) return list(tag & 0xf, depth);
    if (tag < 0xc0) return text(tag & 0x1f);
    if (tag >= 0xe0) return integer(static_cast<std::int8_t>(tag));
    switch (tag) {
      case 0xc0: return {};
      case 0xc2: case 0xc3: return boolean(tag & 1);
      case 0xc4: case 0xd9: return text(take<u8>());
      case 0xc5: case 0xda: return text(big<u16>());
      case 0xc6: case 0xdb: return text(big<u32>());
      case 0xcc: return integer(take<u8>());
      case 0xcd: return integer(big<u16>());
      case 0xce: return integer(big<u32>());
      case 0xcf: return integer(static_cast<std::int64_t>(big<u64>()));
      case 0xd0: return integer(static_cast<std::int8_t>(take<u8>()));
      case 0xd1: return integer(static_cast<std::int16_t>(big<u16>()));
      case 0xd2: return integer(static_cast<std::int32_t>(big<u32>()));
      case 0xd3: return integer(static_cast<std::int64_t>(big<u64>()));
      case 0xdc: return list(big<u16>(), depth);
      case 0xdd: return list(big<u32>(), depth);
      case 0xde: return map(big<u16>(), depth);
      case 0xdf: return map(big<u32>(), depth);
      default: throw DamagedError("the metadata hold a value of type " + std::to_string(tag) + ", which none has");
    }
  }

 private:
  template <class T>
  T take() {
    const T value = bytes_.get<T>(at_, "metadata note");
    at_ += sizeof(T);
    return value;
  }
  template <class T>
  T big() {
    T value = 0;
    for (std::size_t k = 0; k < sizeof(T); ++k) value = static_cast<T>(value << 8 | take<u8>());
    return value;
  }
  static Value integer(std::int64_t number) {
    Value value;
    value.kind = Value::Kind::integer;
    value.integer = number;
    return value;
  }
  static Value boolean(bool truth) {
    Value value = integer(truth);
    value.kind = Value::Kind::boolean;
    return value;
  }
  Value text(u64 size) {
    Value value;
    value.kind = Value::Kind::text;
    value.text = bytes_.part(at_, size, "metadata note").view();
    at_ += size;
    return value;
  }
  Value list(u64 count, int depth) {
    Value value;
    value.kind = Value::Kind::list;
    for (u64 k = 0; k < count; ++k) value.list.push_back(this->value(depth + 1));
    return value;
  }
  Value map(u64 count, int depth) {
    Value value;
    value.kind = Value::Kind::map;
    for (u64 k = 0; k < count; ++k) {
      Value key = this->value(depth + 1);
      value.map[key.text] = this->value(depth + 1);
    }
    return value;
  }

  Bytes bytes_;
  u64 at_ = 0;
};

}  // namespace

const Value* Value::find(const char* key) const {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

std::int64_t Value::number(const char* key, std::int64_t otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (value->kind != Kind::integer && value->kind != Kind::boolean) {
    throw DamagedError(std::string("the metadata's ") + key + " is no number");
  }
  return value->integer;
}

std::string Value::string(const char* key, const char* otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (value->kind != Kind::text) throw DamagedError(std::string("the metadata's ") + key + " is no text");
  return value->text;
}

Value read_msgpack(Bytes bytes) { return Reader(bytes).value(); }

}  // namespace rdna::hip
