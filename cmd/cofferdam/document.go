package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// readDocument reads a small file of the host whole; what it is goes into the
// messages.
func readDocument(what, path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	case !info.Mode().IsRegular():
		return nil, fault.Invalid("the %s %s is not a file", what, path)
	case info.Size() > most:
		return nil, fault.Invalid("the %s %s has %d bytes; the limit is %d", what, path, info.Size(), most)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	case int64(len(data)) > most:
		return nil, fault.Invalid("the %s %s is larger than %d bytes", what, path, most)
	}
	return data, nil
}

// because says in words why a file could not be had.
func because(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "can't be read: permission denied"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Sprintf("can't be read: %s", err)
}
