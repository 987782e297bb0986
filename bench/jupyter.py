"""A plain Jupyter kernel on the host, spoken to by jupyter_client. For each line it runs
1 + 1 and prints how many seconds that took, from the request to the kernel's being idle."""
import sys
import time

from jupyter_client.manager import start_new_kernel

manager, kernel = start_new_kernel(kernel_name="python3")
try:
    for _ in sys.stdin:
        began = time.perf_counter()
        kernel.execute_interactive("1 + 1", output_hook=lambda message: None)
        print(time.perf_counter() - began, flush=True)
finally:
    kernel.stop_channels()
    manager.shutdown_kernel(now=True)
