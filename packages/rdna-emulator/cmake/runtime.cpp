// Nothing: linking it makes Zig compile its C++ library.
