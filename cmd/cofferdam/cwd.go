package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// currentDirectory is the directory that this program was started in, as an absolute path. fault.ErrNotFound: somebody
// has removed it since.
func currentDirectory() (string, error) {
	at, err := os.Getwd()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.New(fault.ErrNotFound, "the directory that you are in is not there any more; change to one that is")
	case err != nil:
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	return at, nil
}
