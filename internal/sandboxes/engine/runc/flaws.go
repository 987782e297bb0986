package runc

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

var _ engine.FlawChecker = (*Engine)(nil)

// flaw is one of runc with which a container reaches the host.
type flaw struct {
	names string
	// fixed are the first versions without it, one for each line of versions that got it;
	// lines after the last of them never had it.
	fixed []string
}

func knownFlaws() []flaw {
	return []flaw{
		{"CVE-2024-21626", []string{"v1.1.12"}},
		{"CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881", []string{"v1.2.8", "v1.3.3", "v1.4.0-rc.3"}},
	}
}

// isInVersion tells whether a version has the flaw.
func (f flaw) isInVersion(version string) bool {
	newer := true // than all lines
	for _, fixed := range f.fixed {
		if semver.MajorMinor(version) == semver.MajorMinor(fixed) {
			return semver.Compare(version, fixed) < 0
		}
		newer = newer && semver.Compare(version, fixed) > 0
	}
	return !newer
}

// Doubts are the known flaws of the runc that is there.
func (e *Engine) Doubts(ctx context.Context) []string {
	path := e.program()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if path == "" || err != nil {
		return nil // that it can't run is said elsewhere
	}
	return doubts(path, string(out))
}

// The words of runc about itself: its version, with what a distribution adds to that, and the
// commit, which is a distribution's own version if it is no hash.
var (
	versionLine = regexp.MustCompile(`(?m)^runc version (\d+\.\d+\.\d+(?:-rc\.?\d+)?)(\S*)$`)
	commitLine  = regexp.MustCompile(`(?m)^commit: (\S+)$`)
	commitHash  = regexp.MustCompile(`^(v.+-g)?[0-9a-f]{7,40}(-dirty)?$`)
)

// doubts reads what runc says of its version. A distribution's is made from the version of
// which it has the number, and has fixes of the distribution's own.
func doubts(path, says string) (all []string) {
	found := versionLine.FindStringSubmatch(says)
	if found == nil || !semver.IsValid("v"+found[1]) {
		return []string{fmt.Sprintf("%s does not say which version it is, so that known flaws can't be excluded", path)}
	}
	distribution := ""
	if found[2] != "" {
		distribution = found[1] + found[2]
	}
	if commit := commitLine.FindStringSubmatch(says); commit != nil && !commitHash.MatchString(commit[1]) {
		distribution = commit[1]
	}
	for _, f := range knownFlaws() {
		switch {
		case !f.isInVersion("v" + found[1]):
		case distribution != "":
			all = append(all, fmt.Sprintf("runc is the distribution's %s; as published, that version has %s, by which a container reaches the host: whether the fix is in it is the distribution's to say", distribution, f.names))
		default:
			all = append(all, fmt.Sprintf("runc %s has %s, by which a container reaches the host: install %s or later", found[1], f.names, strings.ReplaceAll(strings.Join(f.fixed, ", "), "v", "")))
		}
	}
	return all
}
