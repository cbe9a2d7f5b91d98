# Sets `zig`, the compiler under a name that stays the same, and `ziglang_version`.
#
# The build environment is a new temporary folder each time. A command that names it would differ from the last build's,
# and ninja would run it again; so the commands go through a link in the build folder.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import importlib.metadata, os, ziglang; print(os.path.dirname(ziglang.__file__), importlib.metadata.version('ziglang'), sep=';', end='')"
  OUTPUT_VARIABLE found
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "No module ziglang for ${Python_EXECUTABLE}: build with `uv sync`, `uv build` or `pip install`, which install it")
endif()
list(GET found 0 ziglang_folder)
list(GET found 1 ziglang_version)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/toolchain)
file(CREATE_LINK ${ziglang_folder} ${CMAKE_BINARY_DIR}/toolchain/ziglang SYMBOLIC)
set(zig ${CMAKE_BINARY_DIR}/toolchain/ziglang/zig)
