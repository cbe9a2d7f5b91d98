// From the text section of a code object to instructions that the run loop can execute.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "isa/op.hpp"

namespace rdna {

// Decodes a whole text section. Words that are no instruction of the target become instructions that trap when they are
// reached; so do the entries of `insts` past the end of the text, the first of which is where execution runs out of it.
// `symbols` are byte offsets in the text.
// Throws std::invalid_argument for a target that is not known or a text that is not whole dwords.
Program decode_program(const std::string& target, std::span<const u8> text, std::vector<Symbol> symbols, u64 text_base);

}  // namespace rdna
