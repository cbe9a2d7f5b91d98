# Sets the commands `device_compile`, `device_link` and `python`, and `device_compiler_version`, a file that changes with the compiler.
#
# ROCm's own clang is used when ROCM_PATH is set, else the one inside ziglang.

# The build environment is a new temporary folder each time, and ninja runs a command again when its text has changed:
# what lies in that folder is called by a name in the build folder.
set(toolchain ${CMAKE_BINARY_DIR}/toolchain)
file(MAKE_DIRECTORY ${toolchain})
set(python ${toolchain}/python)
file(WRITE ${python} "#!/bin/sh\nexec '${Python_EXECUTABLE}' \"$@\"\n")
file(CHMOD ${python} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

if(DEFINED ENV{ROCM_PATH})
  set(clang $ENV{ROCM_PATH}/llvm/bin/clang)
  set(device_link $ENV{ROCM_PATH}/llvm/bin/ld.lld)
  foreach(program IN LISTS clang device_link)
    if(NOT EXISTS ${program})
      message(FATAL_ERROR "ROCM_PATH is $ENV{ROCM_PATH}, but there is no ${program}: correct it, or unset it to build with ziglang")
    endif()
  endforeach()
  set(origin "ROCm")
else()
  # In the source distribution it lies beside this file.
  list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/../rdna-emulator/cmake)
  include(ziglang)
  set(clang ${zig} clang -nostdlibinc -resource-dir ${toolchain}/ziglang/lib)
  set(device_link ${zig} ld.lld)
  set(origin "ziglang ${ziglang_version}")
endif()

execute_process(COMMAND ${clang} --version OUTPUT_VARIABLE version RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${clang} does not run: ${failed}")
endif()
string(REGEX MATCH "clang version [0-9.]+" version "${version}")
set(device_compiler_version ${toolchain}/device_compiler)
file(CONFIGURE OUTPUT ${device_compiler_version} CONTENT "${origin}, ${version}\n")

# Sets `variable` to the words after "key:" in device_flags.txt.
function(device_flags variable key)
  file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/device_flags.txt line REGEX "^${key}: ")
  string(REGEX REPLACE "^${key}: " "" line "${line}")
  separate_arguments(line UNIX_COMMAND "${line}")
  set(${variable} ${line} PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/device_flags.txt)
device_flags(compile_flags compile)
device_flags(link_flags link)
set(device_compile ${clang} ${compile_flags})
list(APPEND device_link ${link_flags})
