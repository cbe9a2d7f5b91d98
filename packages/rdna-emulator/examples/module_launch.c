/* HIP's module interface with no GPU: loads a code object, launches its kernel, and reads the result.
 *
 *     module_launch saxpy.hsaco
 *
 * prints the sum of y after y = a * x + y. Built as any C program, with the folder of hip_include() and the library of
 * hip_library(); with ROCm's header and library it runs on a GPU. */
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                   \
  do {                                                                                \
    hipError_t error = (call);                                                        \
    if (error != hipSuccess) {                                                        \
      fprintf(stderr, "%s: %s (%d)\n", #call, hipGetErrorString(error), (int)error);  \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

enum { COUNT = 1000, BLOCK = 256 };

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s saxpy.hsaco\n", argv[0]);
    return 2;
  }
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  printf("%s, %s\n", properties.name, properties.gcnArchName);

  hipModule_t module;
  hipFunction_t saxpy;
  CHECK(hipModuleLoad(&module, argv[1]));
  CHECK(hipModuleGetFunction(&saxpy, module, "saxpy"));

  float host[COUNT], a = 2, *x, *y;
  int n = COUNT;
  for (int i = 0; i < COUNT; ++i) host[i] = (float)i;
  CHECK(hipMalloc((void**)&x, sizeof host));
  CHECK(hipMalloc((void**)&y, sizeof host));
  CHECK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  CHECK(hipMemset(y, 0, sizeof host));

  void* arguments[] = {&a, &x, &y, &n};
  CHECK(hipModuleLaunchKernel(saxpy, (COUNT + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL));
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(host, y, sizeof host, hipMemcpyDeviceToHost));

  double sum = 0;
  for (int i = 0; i < COUNT; ++i) sum += host[i];
  printf("sum %.0f\n", sum);
  CHECK(hipFree(x));
  CHECK(hipFree(y));
  CHECK(hipModuleUnload(module));
  return 0;
}
