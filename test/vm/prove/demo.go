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

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// demo is the main job of `make demo`: its agent installs what the policy has with pip, npm and
// Go from the registries of the machine's clients, and nothing else, and looks for a way out.
func demo(ctx context.Context) (string, error) {
	const run = "demo"
	from := filepath.Join(payload, "examples/demo")
	program, err := read(filepath.Join(from, "agent.py"))
	if err != nil {
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
	if err := recorded(records, map[string]audit.Outcome{
		"requests": audit.Installed, "urllib3": audit.Installed, "attrs": audit.Installed, "chalk": audit.Installed, "github.com/google/uuid": audit.Installed,
		"flask": audit.Blocked, "colourama": audit.Blocked, "event-stream": audit.Withheld, "github.com/gofrs/uuid": audit.Blocked,
	}); err != nil {
		return "", err
	}
	if _, err := must(ctx, "cofferdam", "audit", "verify"); err != nil {
		return "", err
	}
	return fmt.Sprintf("installed through the gateway what the policy has, the rest refused; %d records of packages", strings.Count(records, "\n")+1), nil
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
		if !of[outcome] || outcome != audit.Installed && (of[audit.Served] || of[audit.Installed]) {
			return fmt.Errorf("the record has %v of %s, want %s:\n%s", of, name, outcome, lines)
		}
	}
	return nil
}
