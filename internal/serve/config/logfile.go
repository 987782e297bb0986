package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// logRoom is how large a log file of a process in the background may be when the next
// one begins to write it.
const logRoom = 8 << 20

// OpenLog opens the log file of a process in the background for appending. One that has
// grown large is set aside as path.1, in place of the one before. Two that open it at
// once append to the same file or to two: nothing is lost but the third.
func OpenLog(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > logRoom {
		err = os.Rename(path, path+".1")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
