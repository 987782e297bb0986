package discover

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// MaxAnswer bounds one answer, in bytes.
	MaxAnswer   = 256 << 10
	longestWait = 30 * time.Second // for one question to a client
)

// Programs are the paths of a program in env's PATH, then those in extra
// folders, in order and each once. A relative folder of PATH is left out: what
// lies in a working directory is the agents' to write.
func Programs(env []string, names []string, extra ...string) []string {
	var found []string
	for _, dir := range append(filepath.SplitList(Value(env, "PATH")), extra...) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, name := range names {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if err == nil && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// Asked runs a client of the host and returns what it wrote to stdout. It runs
// in the root directory, where nobody can have put configuration or modules that
// it would take for its own.
func Asked(ctx context.Context, env []string, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = env
	cmd.WaitDelay = time.Second
	out := &limitedOutput{left: MaxAnswer}
	cmd.Stdout = out
	err := cmd.Run()
	return out.Bytes(), err
}

// limitedOutput keeps the first bytes of an output and fails the writer afterwards.
type limitedOutput struct {
	bytes.Buffer

	left int
}

func (l *limitedOutput) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, io.ErrShortWrite
	}
	l.left -= len(b)
	return l.Buffer.Write(b)
}
