// src_vccz and src_execz as sources of scalar instructions.
#include "isa/decoding.hpp"

namespace rdna {

void read_status(Wave& w, const Inst& i) {
  w.s[251] = w.s[kVcc] == 0;
  w.s[252] = w.exec() == 0;
  i.body(w, i);
}

}  // namespace rdna
