package firecracker

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The oldest version that is taken: the calls made here are those of 1.16, and releases
// before this one have known faults in what a guest can reach.
const (
	leastMajor = 1
	leastMinor = 16
	leastPatch = 2
)

// Program finds out what a program calls itself; an error if it is no Firecracker, or one that
// is too old.
func Program(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "%s does not start: %.200s", path, strings.TrimSpace(string(out)))
	}
	line, _, _ := strings.Cut(string(out), "\n")
	line = strings.TrimSpace(line)
	var major, minor, patch int
	if _, err := fmt.Sscanf(line, "Firecracker v%d.%d.%d", &major, &minor, &patch); err != nil {
		return "", fault.New(fault.ErrUnavailable, "%s is no Firecracker: it says %.100q", path, line)
	}
	if major != leastMajor || minor < leastMinor || minor == leastMinor && patch < leastPatch {
		return "", fault.New(fault.ErrUnavailable, "%s is %.100s, and machines need version %d.%d.%d or a later one of %d: install such a release", path, line, leastMajor, leastMinor, leastPatch, leastMajor)
	}
	return line, nil
}

// Command is the argv that runs a monitor, which does nothing until it is told. Its filters of
// system calls are its own, and on.
func Command(path, socket, id string) []string {
	return []string{path, "--api-sock", socket, "--id", id}
}
