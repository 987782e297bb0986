// Package embedded carries the built guest agent inside the one binary. The
// Makefile puts it into bin/ before the binary is built; a checkout without it
// still compiles, and says so when the agent is asked for.
package embedded

import (
	"embed"
	"errors"
	"io/fs"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

//go:embed all:bin
var files embed.FS

// Binary returns the guest agent's executable: static, for this architecture.
// fault.ErrUnavailable when this binary was built without it.
func Binary() ([]byte, error) { return binary(files) }

func binary(files fs.FS) ([]byte, error) {
	data, err := fs.ReadFile(files, "bin/cofferdam-guest")
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return nil, fault.New(fault.ErrUnavailable, "this binary was built without the guest agent: run make build")
	}
	return data, err
}
