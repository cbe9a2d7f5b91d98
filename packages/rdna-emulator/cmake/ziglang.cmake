# Sets `zig`, the compiler under a name that stays the same, `ziglang_version`, and `compiler`, a file that changes with it;
# defines `zig_objects`.
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
set(compiler ${CMAKE_BINARY_DIR}/toolchain/compiler)
file(CONFIGURE OUTPUT ${compiler} CONTENT "ziglang ${ziglang_version}\n")

# zig_objects(<result> FOLDER <folder> SOURCES <C++ files of csrc>... FLAGS <flags>...): compiles each source into the
# folder; <result> becomes the list of the objects.
function(zig_objects result)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "FOLDER" "SOURCES;FLAGS")
  set(objects)
  foreach(source IN LISTS given_SOURCES)
    string(REGEX REPLACE "\\.cpp$" "" stem ${source})
    set(object ${given_FOLDER}/${stem}.o)
    get_filename_component(folder ${CMAKE_CURRENT_BINARY_DIR}/${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${zig} c++ ${given_FLAGS} -MMD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/csrc/${source} -o ${object}
      DEPENDS ${compiler} csrc/${source}
      DEPFILE ${object}.d
      COMMENT "${object}"
      VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
