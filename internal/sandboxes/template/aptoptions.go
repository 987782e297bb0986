package template

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// aptOptions are the host's own settings that its mirror may need: proxies,
// and an accepted age of the lists (a mirror that is a dated snapshot). They
// are removed from the tree before it is stored.
func (s *Store) aptOptions(ctx context.Context) []string {
	cmd := exec.CommandContext(ctx, s.findTool("apt-config"), "dump")
	cmd.Env = executable.SystemEnvironment()
	out, err := cmd.Output()
	if err != nil {
		return nil // no apt: the sources were configured, the environment has the proxy
	}
	var options []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), " ")
		kept := strings.HasPrefix(name, "Acquire::http::") || strings.HasPrefix(name, "Acquire::https::") ||
			name == "Acquire::Check-Valid-Until" || name == "Acquire::Check-Date" || name == "Acquire::Retries"
		if kept && !strings.HasSuffix(lines.Text(), ` "";`) {
			options = append(options, lines.Text())
		}
	}
	// Credentials of a mirror, if apt has any.
	for setting, path := range map[string]string{"Dir::Etc::netrc": "/etc/apt/auth.conf", "Dir::Etc::netrcparts": "/etc/apt/auth.conf.d"} {
		if _, err := os.Stat(filepath.Join(s.opt.HostRoot, path)); err == nil {
			options = append(options, setting+` "`+path+`";`)
		}
	}
	return options
}
