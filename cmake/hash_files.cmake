# cmake -DOUTPUT=header.h -DFILES=list -P hash_files.cmake: a hash of what the files hold.
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#define GPURUN_CODEGEN_HASH \"${hash}\"\n")
