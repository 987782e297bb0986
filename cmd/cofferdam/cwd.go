package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// currentDirectory is the directory that this program was started in, as an absolute path. fault.ErrNotFound: somebody
// has removed it since.
func currentDirectory() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", noDirectory(err)
	}
	return at, nil
}

// noDirectory says why the current directory is not known.
func noDirectory(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.ErrNotFound, "the directory that you are in is not there any more; change to one that is")
	}
	return fmt.Errorf("find the current directory: %w", err)
}
