package sandbox

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is which boot of the machine this is and how long it is since, time in
// which it was suspended included: what two daemons can compare, whatever somebody
// does to the wall clock meanwhile.
func sinceBoot() (boot string, since time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0 // nothing can be compared, and every sandbox keeps what it had left
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return "", 0
	}
	return strings.TrimSpace(string(id)), time.Duration(now.Nano())
}
