// Runs a program and shows what it wrote: hello FILE.wasm [ARGUMENTS]
#include <gpurun/gpurun.h>
#include <stdio.h>

static int fail(gpurun_error* error) {
    fprintf(stderr, "hello: %s\n", gpurun_error_message(error));
    gpurun_error_delete(error);
    return 1;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: hello FILE.wasm [ARGUMENTS]\n");
        return 2;
    }
    gpurun_device* device = NULL;
    gpurun_module* module = NULL;
    gpurun_result* result = NULL;
    gpurun_config* config = gpurun_config_new();
    for (int i = 2; i < argc; i++) gpurun_config_add_argument(config, argv[i]);

    gpurun_error* error = gpurun_device_open("auto", &device);
    if (!error) error = gpurun_module_load_file(argv[1], &module);
    if (!error) error = gpurun_run(device, module, config, &result);
    int code = error ? fail(error) : (int)gpurun_result_exit_code(result, 0);

    size_t size = 0;
    const char* output = gpurun_result_output(result, 0, 1, &size);
    if (output) fwrite(output, 1, size, stdout);
    const char* message = gpurun_result_message(result, 0);
    if (message) fprintf(stderr, "hello: %s\n", message);

    gpurun_result_delete(result);
    gpurun_module_delete(module);
    gpurun_device_delete(device);
    gpurun_config_delete(config);
    return code;
}
