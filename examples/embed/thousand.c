// A thousand processes of one function, each with its number as the argument.
#include <gpurun/gpurun.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char guest[] =
    "(module (func (export \"square\") (param i64) (result i64)"
    "  (i64.mul (local.get 0) (local.get 0))))";

int main(void) {
    gpurun_device* device = NULL;
    gpurun_module* module = NULL;
    gpurun_result* result = NULL;
    gpurun_config* config = gpurun_config_new();
    gpurun_config_set_processes(config, 1000);
    gpurun_config_set_function(config, "square");
    gpurun_config_add_argument(config, "{}");

    gpurun_error* error = gpurun_device_open("auto", &device);
    if (!error) error = gpurun_module_load(guest, strlen(guest), "guest.wat", &module);
    if (!error) error = gpurun_run(device, module, config, &result);
    if (error) fprintf(stderr, "thousand: %s\n", gpurun_error_message(error));

    int64_t sum = 0;
    for (uint32_t i = 0; i < gpurun_result_processes(result); i++) {
        if (gpurun_result_ending(result, i) == GPURUN_RETURNED)
            sum += gpurun_result_value(result, i, 0).of.i64;
        else
            fprintf(stderr, "process %" PRIu32 ": %s\n", i, gpurun_result_message(result, i));
    }
    if (!error) printf("the sum of the squares below 1000 is %" PRId64 "\n", sum);

    int code = error ? 1 : 0;
    gpurun_error_delete(error);
    gpurun_result_delete(result);
    gpurun_module_delete(module);
    gpurun_device_delete(device);
    gpurun_config_delete(config);
    return code;
}
