package config

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwned guards against a directory that somebody else made first in a
// world-writable place such as /tmp.
func checkOwned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at the directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; remove it or set COFFERDAM_STATE and COFFERDAM_RUNTIME", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user; set COFFERDAM_STATE and COFFERDAM_RUNTIME to directories of your own", path)
	}
	return nil
}
