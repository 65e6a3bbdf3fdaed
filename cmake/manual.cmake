# The manual page and shell completions, which gpu-run itself prints, in build/share.
set(share ${PROJECT_BINARY_DIR}/share)
set(manual_files)
function(gpurun_prints file)
  get_filename_component(folder ${share}/${file} DIRECTORY)
  add_custom_command(OUTPUT ${share}/${file} DEPENDS gpu-run
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
                     COMMAND gpu-run ${ARGN} > ${share}/${file} VERBATIM)
  list(APPEND manual_files ${share}/${file})
  set(manual_files ${manual_files} PARENT_SCOPE)
endfunction()
gpurun_prints(man/man1/gpu-run.1 man)
gpurun_prints(bash-completion/completions/gpu-run completions bash)
gpurun_prints(zsh/vendor-completions/_gpu-run completions zsh)
gpurun_prints(fish/vendor_completions.d/gpu-run.fish completions fish)
add_custom_target(manual ALL DEPENDS ${manual_files})

include(GNUInstallDirs)
install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
