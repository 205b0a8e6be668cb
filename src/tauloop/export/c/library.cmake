cmake_minimum_required(VERSION 3.15)
project(@NAME@ VERSION @VERSION@ LANGUAGES C)

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_library(@NAME@_library STATIC src/@NAME@.c)
add_library(@NAME@::@NAME@ ALIAS @NAME@_library)
set_target_properties(@NAME@_library PROPERTIES
    OUTPUT_NAME @NAME@ EXPORT_NAME @NAME@ C_STANDARD 99 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
target_include_directories(@NAME@_library PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_options(@NAME@_library PRIVATE $<$<C_COMPILER_ID:GNU,Clang,AppleClang>:-fno-math-errno>)
if(NOT MSVC)
    target_link_libraries(@NAME@_library PUBLIC m)
endif()

include(CTest)
if(BUILD_TESTING AND CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    add_executable(@NAME@_check test/@NAME@_check.c)
    target_link_libraries(@NAME@_check PRIVATE @NAME@_library)
    add_test(NAME @NAME@_check COMMAND @NAME@_check)
endif()

set(place ${CMAKE_INSTALL_LIBDIR}/cmake/@NAME@)
install(TARGETS @NAME@_library EXPORT @NAME@_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES src/@NAME@.h src/@NAME@.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT @NAME@_targets NAMESPACE @NAME@:: FILE @NAME@Config.cmake DESTINATION ${place})
write_basic_package_version_file(@NAME@ConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/@NAME@ConfigVersion.cmake DESTINATION ${place})
