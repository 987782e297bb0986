"""What a program does when it finds itself in a copy of its sandbox.

    import sys
    sys.path.append("/run/cofferdam/hooks")
    import cofferdam

    cofferdam.on_restore()            # OpenSSL's random numbers are this copy's own
    cofferdam.on_restore(forget_keys) # and then forget_keys() is called

A copy goes on with the memory of its source: whatever secret that holds is in every
copy. The hooks run in a thread of their own, soon after the copy has begun; whoever must
not use anything before they have run compares generation() with what it was.
"""

import ctypes
import os
import sys
import threading
import traceback

GENERATION = "/run/cofferdam/generation"
_IN_CLOSE_WRITE = 0x8
_IN_CLOEXEC = 0o2000000

_lock = threading.Lock()
_hooks = []
_watching = False


def generation():
    """The id of this copy: another one in each, and the same as long as it lives."""
    with open(GENERATION, encoding="ascii") as file:
        return file.read().strip()


def on_restore(hook=None):
    """Has OpenSSL's random numbers renewed in each copy, and then hook() called."""
    global _watching
    with _lock:
        if hook is not None:
            _hooks.append(hook)
        if not _watching:
            _watching = True
            _watch()
            os.register_at_fork(after_in_child=_watch)
    return hook


def _watch():
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(_IN_CLOEXEC)
    if watch < 0 or libc.inotify_add_watch(watch, GENERATION.encode(), _IN_CLOSE_WRITE) < 0:
        raise OSError(ctypes.get_errno(), "copies of this sandbox can't be noticed", GENERATION)
    threading.Thread(target=_follow, args=(watch, generation()), name="cofferdam", daemon=True).start()


def _follow(watch, last):
    while True:
        os.read(watch, 4096)
        now = generation()
        if now != last:
            last = now
            _renew()


def _renew():
    if "ssl" in sys.modules or "_hashlib" in sys.modules:
        import ssl

        fresh = os.urandom(48)
        ssl.RAND_add(fresh, len(fresh))
    with _lock:
        hooks = list(_hooks)
    for hook in hooks:
        try:
            hook()
        except Exception:
            traceback.print_exc()
