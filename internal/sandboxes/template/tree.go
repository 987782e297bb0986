package template

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// removeTree deletes a tree, also one whose files belong to a namespace's
// users, which the plain way can't. It keeps its hands off a tree in which
// something is mounted: that may be the host's own.
func (s *Store) removeTree(ctx context.Context, dir string) error {
	if at, err := mountedUnder("/proc/self/mountinfo", dir); err != nil || at != "" {
		return fault.Wrap(fault.ErrConflict, err, "%s is not removed, for something is mounted at %q in it: unmount that first", dir, at)
	}
	err := os.RemoveAll(dir)
	if err == nil || os.Geteuid() == 0 {
		return err
	}
	tool := s.findTool("mmdebstrap")
	if tool == "" {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, "--unshare-helper", "rm", "-rf", "--", dir)
	cmd.Env = executable.SystemEnvironment()
	// It removes what is the namespace's, and fails at what is ours.
	_ = cmd.Run()
	return os.RemoveAll(dir)
}

// mountedUnder returns the first mount point at or under dir, "" if none.
func mountedUnder(mountinfo, dir string) (string, error) {
	raw, err := os.ReadFile(mountinfo)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if at := unescape.Replace(fields[4]); at == resolved || strings.HasPrefix(at, resolved+"/") {
			return at, nil
		}
	}
	return "", nil
}

// copyFile copies content; the copy is new and has the mode given.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, mode) // whatever the umask
}
