package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestWithoutGroups: where a daemon may make none, it says so in one line, with what to do, and
// its processes run without.
func TestWithoutGroups(t *testing.T) {
	t.Parallel()
	nothing := filepath.Join(t.TempDir(), "mountinfo")
	must(t, os.WriteFile(nothing, nil, 0o600))
	var said strings.Builder
	p := newProcessGroups(cgroup.New(cgroup.Config{Parent: "cofferdam-none", MountInfo: nothing}), config.Processes{}, slog.New(slog.NewTextHandler(&said, nil)))
	if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "run without limits of cpu, memory, pids") || !strings.Contains(text, "mount cgroup2") {
		t.Errorf("it says %q", text)
	}
	in, err := p.adoptProcess("gateway", os.Getpid(), config.ProcessLimit{Memory: 1 << 30, Tasks: 100})
	if err != nil {
		t.Fatal(err)
	}
	ended := errors.New("signal: killed")
	if got := in.explainEnd(ended); !errors.Is(got, ended) || got.Error() != ended.Error() {
		t.Errorf("of an end nobody knows why it says %v", got)
	}
	p.removeGroup(t.Context(), "gateway")
	if strings.Count(said.String(), "\n") != 1 {
		t.Errorf("it says more: %s", said.String())
	}
}

// TestALimitIsNamedAsItIsSet: whoever reads which limit was met finds that key in the configuration.
func TestALimitIsNamedAsItIsSet(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"gateway": "gateway", "keeper": "keeper", "reader": "gateway"} {
		in := limitedProcess{name: name}
		for end, now := range map[string]cgroup.Met{".memory (": {OOMKills: 1}, ".tasks (": {PidsRefused: 1}} {
			if got := in.explainMet(now, errors.New("ended")); !strings.Contains(got.Error(), "the "+name+" reached") || !strings.Contains(got.Error(), " processes."+key+end) {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}
