//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// demo is the main job of `make demo`, of which the agent does what it does with pip, and
// then looks for a way out: it installs what the policy has from the registry of the
// machine's clients, and nothing else. npm and the compiler of Go compute for long in a
// machine that is emulated.
func demo(ctx context.Context) (string, error) {
	return demonstrate(ctx, "demo", map[string]audit.Outcome{
		"requests": audit.Installed, "urllib3": audit.Installed, "attrs": audit.Installed, "flask": audit.Blocked, "colourama": audit.Blocked,
	}, "Node", "Go")
}

// demoWhole is all of it.
func demoWhole(ctx context.Context) (string, error) {
	return demonstrate(ctx, "demo-whole", map[string]audit.Outcome{
		"requests": audit.Installed, "chalk": audit.Installed, "github.com/google/uuid": audit.Installed,
		"flask": audit.Blocked, "event-stream": audit.Blocked, "github.com/gofrs/uuid": audit.Blocked,
	})
}

// demonstrate runs the demo's agent without some of its sections, and wants of these
// packages to be on record what is said here.
func demonstrate(ctx context.Context, run string, want map[string]audit.Outcome, left ...string) (string, error) {
	from := filepath.Join(payload, "examples/demo")
	program, err := read(filepath.Join(from, "agent.py"))
	if err != nil {
		return "", err
	}
	if program, err = without(program, left...); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "demo-") // its sandbox may write there
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "agent.py"), []byte(program), 0o644)); err != nil {
		return "", err
	}
	if _, err := must(ctx, "cofferdam", "run", "--policy", filepath.Join(from, "policy.yaml"), "--run-id", run,
		"--mount", dir+":/workspace", "--workdir", "/workspace", "--", "python3", "agent.py"); err != nil {
		return "", err
	}
	records, err := must(ctx, "cofferdam", "audit", "list", "--run", run, "--kind", string(audit.KindPackage), "--json")
	if err != nil {
		return "", err
	}
	if err := recorded(records, want); err != nil {
		return "", err
	}
	if _, err := must(ctx, "cofferdam", "audit", "verify"); err != nil {
		return "", err
	}
	return fmt.Sprintf("installed through the gateway what the policy has, the rest refused; %d records of packages", strings.Count(records, "\n")+1), nil
}

// without leaves sections out of the agent's program: each begins with a line that names it.
func without(program string, names ...string) (string, error) {
	const mark = "# --- "
	parts := strings.Split(program, "\n"+mark)
	kept, missing := parts[:1], len(names)
next:
	for _, part := range parts[1:] {
		for _, name := range names {
			if strings.HasPrefix(part, name+" -") {
				missing--
				continue next
			}
		}
		kept = append(kept, part)
	}
	if missing != 0 {
		return "", fmt.Errorf("INCONCLUSIVE: of the sections %q the demo's agent has others", names)
	}
	return strings.Join(kept, "\n"+mark), nil
}

// recorded wants of each package a record with its outcome, and of one that is refused none
// that it was let in.
func recorded(lines string, want map[string]audit.Outcome) error {
	seen := map[string]map[audit.Outcome]bool{}
	for line := range strings.Lines(lines) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
		if seen[r.Package] == nil {
			seen[r.Package] = map[audit.Outcome]bool{}
		}
		seen[r.Package][r.Outcome] = true
	}
	for name, outcome := range want {
		of := seen[name]
		if !of[outcome] || outcome == audit.Blocked && (of[audit.Served] || of[audit.Installed]) {
			return fmt.Errorf("the record has %v of %s, want %s:\n%s", of, name, outcome, lines)
		}
	}
	return nil
}
