// Package embedded carries the built cofferdam-stage inside the one binary. The Makefile puts
// it into bin/ before the binary is built; a checkout without it still compiles, and the one
// binary does the same itself, more slowly.
package embedded

import (
	"embed"
	"errors"
	"io/fs"
)

//go:embed all:bin
var files embed.FS

// Stage is the program: static, for this architecture; nil where this binary was built
// without it.
func Stage() ([]byte, error) { return readStage(files) }

func readStage(files fs.FS) ([]byte, error) {
	data, err := fs.ReadFile(files, "bin/cofferdam-stage")
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return nil, nil
	}
	return data, err
}
